"""Profiles of chips: what the loader takes, refuses, extends and changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.profile import (
    Basis,
    Device,
    Evidence,
    Included,
    Kind,
    Quantity,
    Timing,
    Unknown,
)
from neuro_eqprop.chips.profiles.load import (
    load_profile,
    load_profiles,
    profile_folder,
    profile_names,
)
from neuro_eqprop.chips.profiles.schema import ProfileError
from neuro_eqprop.chips.quantities import KEYS
from neuro_eqprop.common.arrays import UnknownNameError

QUANTITY = (
    '{ value = 20, low = 10, high = 40, unit = "pJ", kind = "marginal", basis = "measured", '
    'evidence = "read", boundary = "core_dynamic", src = "paper", where = "Table 1" }'
)
LIMIT = 'basis = "vendor", evidence = "read", src = "paper", where = "Table 2" }'
CHIP = f"""
schema = "neuro_eqprop.profile/1"
name = "mine"
title = "My chip"
device = "spiking"
timing = "unknown"
[sources.paper]
ref = "A paper"
[operating_point]
supply = "1 V"
[energy]
synop = {QUANTITY}
neuron_update = {{ unknown = true, note = "not published" }}
neuron_spiking = {{ within = "energy.synop", note = "measured together" }}
[power]
static = {{ unknown = true, note = "not published" }}
[capacity]
cores_per_chip = {{ value = 4, unit = "count", {LIMIT}
neurons_per_core = {{ value = 100, unit = "count", {LIMIT}
weight_bits = {{ choices = [8, 4], unit = "bit", {LIMIT}
"""


@pytest.fixture
def chip(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(CHIP)
    return path


def test_a_users_file_is_read_in_si_units(chip: Path) -> None:
    profile = load_profile(str(chip))
    synop = profile.known("energy.synop")
    assert isinstance(synop, Quantity)
    assert (synop.value, synop.low, synop.high) == pytest.approx((20e-12, 10e-12, 40e-12))
    assert (synop.unit, synop.kind, synop.basis) == ("J", Kind.MARGINAL, Basis.MEASURED)
    assert (synop.evidence, synop.boundary) == (Evidence.READ, Boundary.CORE_DYNAMIC)
    assert isinstance(profile.entry("energy.neuron_update"), Unknown)
    assert isinstance(profile.entry("energy.neuron_spiking"), Included)
    assert isinstance(profile.entry("energy.message"), Unknown)
    assert profile.limit("weight_bits") == 8
    assert profile.limit("max_fan_in") is None
    assert profile.allows("recurrence") is None


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_is_valid(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.operating_point
    for entry in profile.entries.values():
        if isinstance(entry, Quantity):
            assert entry.src in profile.sources
            assert entry.low <= entry.value <= entry.high
            assert entry.value > 0 or entry.unit == "flag"
        else:
            assert entry.note


def test_the_profiles_that_were_promised_are_there() -> None:
    promised = {
        *("loihi1", "truenorth", "odin", "spinnaker1", "spinnaker2", "brainscales2", "xylo_a2"),
        *("speck", "tianjic", "loihi2", "akida1000", "loihi2_scenario"),
        *("cpu_e5_2630", "gpu_k4000", "jetson_tx1", "mac45nm", "cortex_m4", "cortex_m7"),
        *("cortex_m33", "ndp9120", "orin_nano", "seneca", "sne", "reckon", "innatera_t1"),
        "hala_point",
    }
    assert promised <= set(profile_names())


def test_energies_of_chips_that_published_none_stay_unknown() -> None:
    assert isinstance(load_profile("akida1000").entry("energy.synop"), Unknown)


BROKEN = [
    ("value = 20, ", "", "value is missing"),
    ("low = 10, ", "", "low is missing"),
    ("value = 20", "value = -20", "energy.synop: value: expected number >= 0"),
    ("value = 20", "value = true", "expected number"),
    ("value = 20", "value = nan", "not a finite number"),
    ("low = 10", "low = 30", "not in this order"),
    ("high = 40", "high = 15", "not in this order"),
    (
        "value = 20, low = 10, high = 40",
        "value = 0, low = 0, high = 0",
        "a cost must be above zero",
    ),
    ('unit = "pJ"', 'unit = "pj"', "known: pJ"),
    ('unit = "pJ"', 'unit = "W"', "unit 'W' is unknown or has another dimension; known: "),
    ('unit = "pJ", ', "", "unit is missing"),
    ('basis = "measured"', 'basis = "measured!"', "known: measured"),
    ('kind = "marginal"', 'kind = "all_in"', "energy.synop_all_in"),
    ('kind = "marginal"', 'kind = "power"', "use 'marginal'"),
    ('boundary = "core_dynamic"', 'boundary = "chip"', "known: chip_"),
    ('boundary = "core_dynamic", ', "", "boundary is missing"),
    ('src = "paper", where = "Table 1"', 'src = "papr", where = "x"', "sources: paper"),
    ('where = "Table 1"', 'where = ""', "where: expected text that is not blank"),
    ('where = "Table 1"', 'wher = "Table 1"', "did you mean 'where'"),
    ("synop = {", "synops = {", "did you mean 'energy.synop'"),
    ('within = "energy.synop"', 'within = "energy.message"', "which has no value"),
    ('within = "energy.synop"', 'within = "energy.synops"', "did you mean 'energy.synop'"),
    ('unknown = true, note = "not published" }\nneuron_s', "unknown = true }\nneuron_s", "note"),
    ("cores_per_chip = { value = 4", "cores_per_chip = { value = 0", "a limit must be above zero"),
    ("choices = [8, 4]", "choices = []", "list of numbers"),
    ('device = "spiking"', 'device = "spikng"', "known: spiking"),
    ('title = "My chip"\n', "", "title is missing"),
    ('title = "My chip"', 'titel = "My chip"', "did you mean 'title'"),
    ("neuro_eqprop.profile/1", "neuro_eqprop.profile/9", "schema"),
    ('supply = "1 V"', "", "operating_point"),
    ("cores_per_chip", "cores_per_tile", "capacity.cores_per_chip: it is missing"),
    ("[power]", "[power", "not readable as TOML"),
    ('ref = "A paper"', 'reff = "A paper"', "did you mean 'ref'"),
    (
        '[sources.paper]\nref = "A paper"',
        "[sources]\npaper = 3",
        "sources.paper: expected table, got 3",
    ),
    ('[operating_point]\nsupply = "1 V"', "[sources.b]\nref = 'b'", "operating_point"),
    ('timing = "unknown"', 'timing = "unknown"\noperating_point = 3', "not readable as TOML"),
    ('timing = "unknown"', 'timing = "unknown"\ntime = 3', "time: expected table, got 3"),
    ('timing = "unknown"', 'timing = "unknown"\nscale = 3', "scale: expected table, got 3"),
    (
        'timing = "unknown"',
        'timing = "unknown"\nnotes = "one"',
        "notes: expected list, got 'one'",
    ),
    ('timing = "unknown"', 'timing = "unknown"\nbatch = [3]', "batch[0]: expected table, got 3"),
    ('timing = "unknown"', 'timing = "unknown"\nextends = "loihi"', "extends: unknown profile"),
    (
        'timing = "unknown"',
        'timing = "unknown"\nextends = "loihi1"\ntime = 3',
        "time: expected table, got 3",
    ),
]


@pytest.mark.parametrize(("old", "new", "words"), BROKEN)
def test_a_broken_file_is_refused_with_file_key_and_reason(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in CHIP
    path = tmp_path / "mine.toml"
    path.write_text(CHIP.replace(old, new, 1))
    with pytest.raises(ProfileError) as error:
        load_profile(str(path))
    assert "mine.toml" in str(error.value)
    assert words in str(error.value)


def test_a_missing_file_and_an_unknown_name_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no such file"):
        load_profile(str(tmp_path / "none.toml"))
    with pytest.raises(UnknownNameError, match="known: loihi1"):
        load_profile("loihi_1")


def test_a_file_extends_a_profile_and_lists_its_changes(tmp_path: Path) -> None:
    path = tmp_path / "faster.toml"
    path.write_text(
        'schema = "neuro_eqprop.profile/1"\nextends = "loihi1"\nname = "faster"\n'
        "[energy]\nsynop = { value = 30 }\nhop_ew = { unknown = true, note = 'not ours' }\n"
    )
    profile = load_profile(str(path))
    synop = profile.known("energy.synop")
    assert synop is not None
    assert (synop.value, synop.low, synop.high) == pytest.approx((30e-12,) * 3)
    assert synop.basis is Basis.GIVEN
    assert profile.sources[synop.src].ref == "given in faster.toml"
    assert isinstance(profile.entry("energy.hop_ew"), Unknown)
    assert profile.entry("power.static") == load_profile("loihi1").entry("power.static")
    assert profile.overridden == (
        "energy.synop: 23.6 pJ -> 30 pJ (faster.toml)",
        "energy.hop_ew: 3.0 pJ -> unknown (faster.toml)",
    )


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{one}.toml").write_text(f'extends = "{other}"\n')
    with pytest.raises(ProfileError, match="extends itself"):
        load_profile(str(tmp_path / "a.toml"))


def test_a_variant_board_that_ships_counts_as_no_change() -> None:
    board = load_profile("spinnaker1_spinn5")
    assert board.overridden == ()
    assert board.limit("chips_per_board") == 48


@pytest.mark.parametrize(("text", "value"), [("30pJ", 30e-12), ("3e-11", 3e-11), ("0.03nJ", 3e-11)])
def test_a_value_is_overridden_and_that_is_kept(text: str, value: float) -> None:
    (profile,) = load_profiles(["loihi1"], [f"loihi1.energy.synop={text}"])
    synop = profile.known("energy.synop")
    assert synop is not None
    assert (synop.value, synop.low, synop.high) == pytest.approx((value,) * 3)
    assert synop.evidence is Evidence.GIVEN
    assert profile.overridden == ("energy.synop: 2.36e-11 J -> 3e-11 J (override)",)


def test_an_unknown_value_can_be_given() -> None:
    (profile,) = load_profiles(["loihi1"], ["loihi1.energy.barrier=1nJ"])
    barrier = profile.known("energy.barrier")
    assert barrier is not None
    assert barrier.boundary is Boundary.CHIP_DYNAMIC


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("loihi1.energy.synops=1", "did you mean 'energy.synop'"),
        ("loihi1.energy.synop=-1", "not above zero"),
        ("loihi1.energy.synop=0", "not above zero .* leave what is not known unknown"),
        ("loihi1.energy.synop=much", "not a quantity"),
        ("loihi1.energy.synop=3pW", "not a quantity"),
        ("loihi1.energy.synop", "has no value"),
        ("loihi2.energy.synop=1", "names no profile of this call"),
        ("energy.synop=1", "names no profile of this call"),
        ("loihi1.energy.synop_all_in=1", "operating point"),
    ],
)
def test_a_wrong_override_is_refused(override: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        load_profiles(["loihi1"], [override])


def test_a_scenario_waits_for_factors_and_scales_every_value() -> None:
    assert load_profile("loihi2_scenario").missing == ("energy", "power", "time")
    factors: dict[str, str | float]
    factors = {"scale.energy": 0.5, "scale.power": "2", "scale.time": 0.1}
    scenario, base = load_profile("loihi2_scenario", factors), load_profile("loihi1")
    assert scenario.missing == ()
    assert scenario.scenario
    for key, by in (("energy.synop", 0.5), ("power.idle_loaded", 2.0), ("time.barrier", 0.1)):
        after, before = scenario.known(key), base.known(key)
        assert after is not None
        assert before is not None
        assert (after.low, after.high) == pytest.approx((by * before.low, by * before.high))
    assert scenario.limit("cores_per_chip") == base.limit("cores_per_chip")
    one = load_profile("loihi2_scenario", {"scale": 0.5, "scale.time": 0.2})
    assert one.missing == ()
    assert one.overridden[-1] == "time: every value x 0.2 (scenario)"
    assert "energy: every value x 0.5 (scenario)" in one.overridden
    with pytest.raises(ProfileError, match="no such factor"):
        load_profile("loihi2_scenario", {"scale.speed": 2})
    with pytest.raises(ProfileError, match="no such factor"):
        load_profile("loihi1", {"scale": 2})


def test_dense_devices_have_measured_batches() -> None:
    gpu = load_profile("gpu_k4000")
    assert gpu.device is Device.DENSE
    assert [point.batch for point in gpu.batches] == [1, 8, 64]
    costs = [point.joules_per_mac.value for point in gpu.batches]
    assert costs == pytest.approx([172e-9, 20.8e-9, 4.2e-9])


def test_an_all_in_cost_carries_its_operating_point() -> None:
    cost = load_profile("truenorth").known("energy.synop_all_in")
    assert cost is not None
    assert cost.kind is Kind.ALL_IN
    assert cost.at == pytest.approx(20 * 128 * 2**20, rel=1e-3)


def test_boundaries_hold_each_other_in_a_partial_order() -> None:
    assert Boundary.SYSTEM_WALL.holds(Boundary.CORE_DYNAMIC)
    assert Boundary.CHIP_TOTAL.holds(Boundary.CHIP_DYNAMIC)
    assert not Boundary.CHIP_TOTAL.holds(Boundary.BOARD_DYNAMIC)
    assert not Boundary.BOARD_DYNAMIC.holds(Boundary.CHIP_TOTAL)
    for one in Boundary:
        assert one.holds(one)
        for other in Boundary:
            for third in Boundary:
                if one.holds(other) and other.holds(third):
                    assert one.holds(third)


def test_the_folder_is_the_one_of_the_checkout_or_the_package() -> None:
    assert profile_folder().name == "hardware_profiles"
    assert (profile_folder() / "README.md").is_file()
    assert load_profile("loihi1").timing is Timing.BARRIER


def test_the_readme_names_every_key() -> None:
    text = (profile_folder() / "README.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in text] == []
