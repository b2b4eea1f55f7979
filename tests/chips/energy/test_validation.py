"""Predictions against published measurements."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.validation import (
    Check,
    ProfileValidation,
    calibrate,
    check,
    interpolate,
    profile_of,
    residuals_of,
    validate_profiles,
)
from neuro_eqprop.chips.profile import Overhead, Tier
from neuro_eqprop.chips.profiles.load import load_profile, parse_override
from neuro_eqprop.chips.published import (
    CaseRole,
    Line,
    Measure,
    PublishedCase,
    case_files,
    read_cases,
)
from neuro_eqprop.files.read import FileFormatError


def published() -> dict[str, PublishedCase]:
    return {case.name: case for path in case_files() for case in read_cases(path)}


def predict(case: PublishedCase) -> Check:
    return check(case, profile_of(case, {}))


@pytest.fixture(scope="module")
def validation() -> ProfileValidation:
    return validate_profiles()


def test_no_published_measurement_that_should_hold_fails(validation: ProfileValidation) -> None:
    assert [each.case.name for each in validation.failed] == []


def test_enough_cases_over_enough_chips_lie_in_ranges_that_say_something(
    validation: ProfileValidation,
) -> None:
    assert len(validation.checks) >= 25
    assert len({each.case.profile for each in validation.checks}) >= 8
    found = validation.predictions
    assert len(found) >= 25
    assert validation.coverage is not None
    assert 0.8 <= validation.coverage <= 1
    assert validation.width is not None
    assert validation.width < 3
    sourced = validation.to_json()["calibrated"]
    assert sourced["cases"] >= 40
    assert sourced["coverage"] >= 0.8
    assert sourced["width"] <= 2
    outcome = validation.to_json()
    # A miss counts however wide its range is.
    assert outcome["worst_prediction"] == max(abs(each.error) for each in found)
    assert len(outcome["misses"]) == sum(not each.within for each in found)
    assert set(outcome["by_chip"]) == {each.case.profile for each in found}


def test_the_nominal_value_lies_in_its_range(validation: ProfileValidation) -> None:
    for each in validation.checks:
        low, high = each.predicted.low, each.predicted.high
        assert low * (1 - 1e-9) <= each.predicted.value <= high * (1 + 1e-9), each.case.name


def test_a_chip_is_calibrated_by_at_least_four_points_of_its_own() -> None:
    assert calibrate([0.1, 0.1, 0.1]) is None
    close = calibrate([0.0, 0.05, -0.1, 0.1])
    assert close is not None
    assert (close.points, close.inside, close.factor) == (4, 4, close.least)
    wide = calibrate([0.9, -0.8, 0.85, 0.95, -0.9])
    assert wide is not None
    assert wide.factor == pytest.approx(exp(0.91), rel=1e-3)


def test_the_calibrations_that_ship_are_those_of_the_frozen_cases(
    validation: ProfileValidation,
) -> None:
    for name in {each.case.profile for each in validation.checks}:
        profile = load_profile(name)
        for kind in ("energy", "time"):
            shipped = profile.calibration.get(kind)
            least = 1.4 if shipped is None else shipped.least
            found = calibrate(residuals_of(validation.checks, name, kind), least=least)
            if shipped is None or found is None:
                assert shipped is found is None, (name, kind)
                continue
            assert shipped.points == found.points, (name, kind)
            assert shipped.inside == found.inside, (name, kind)
            assert shipped.factor == pytest.approx(found.factor, abs=2e-3), (name, kind)


def test_badly_sourced_cases_train_nothing(validation: ProfileValidation) -> None:
    for each in validation.checks:
        assert not (each.trains and each.case.grade == "C")
    worse = [replace(each, case=replace(each.case, grade="C")) for each in validation.checks]
    assert residuals_of(worse, "truenorth", "energy") == []


def test_published_step_times_of_several_systems_lie_in_their_ranges(
    validation: ProfileValidation,
) -> None:
    timed = [each for each in validation.checks if each.case.measure is Measure.TIME]
    inside = {each.case.profile for each in timed if each.within}
    spiking = {"loihi1", "loihi2", "hala_point", "odin", "truenorth", "tianjic"}
    assert spiking | {"cortex_m33", "cortex_m7", "cortex_m4"} <= inside
    (gesture,) = (each for each in timed if each.case.name == "loihi1-gesture-step")
    assert abs(gesture.error) <= 0.25


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("truenorth-held-out-20Hz", 0.02),
        ("odin-accelerated", 0.01),
        ("odin-biological", 0.01),
        ("loihi1-scaling-2", 0.01),
        ("loihi1-scaling-4", 0.01),
        ("loihi1-scaling-6", 0.01),
        ("loihi1-scaling-8", 0.01),
    ],
)
def test_the_errors_that_were_to_be_reached(name: str, error: float) -> None:
    case = published()[name]
    assert case.tolerance == error
    assert abs(predict(case).error) <= error


def test_loihis_keyword_spotter_lies_in_its_range_and_the_range_is_not_wide() -> None:
    found = predict(published()["loihi1-kws"])
    assert found.within
    assert found.predicted.factor < 3


def test_placements_of_published_networks_are_reached(validation: ProfileValidation) -> None:
    found = {each.case.name: each.predicted.value for each in validation.checks}
    assert 49 - 15 <= found["loihi1-gesture-cores"] <= 49 + 15
    for name in ("loihi1-gesture-messages", "loihi1-gesture-mapped"):
        assert 386_640 / 1.5 <= found[name] <= 1.5 * 386_640
    assert found["loihi2-pilotnet-cores"] == pytest.approx(74, rel=0.3)
    assert found["loihi2-pilotnet-cores-fed"] == pytest.approx(61, rel=0.3)


def test_constants_of_another_paper_miss_the_spotter_and_that_is_shown() -> None:
    found = predict(published()["loihi1-kws-by-others"])
    assert found.error > 0.5
    # A changed constant is not calibrated: the range is an order of magnitude.
    assert found.tier is Tier.ORDER_OF_MAGNITUDE
    assert found.holds is None
    assert found.validates


def test_only_predictions_validate(validation: ProfileValidation) -> None:
    for each in validation.checks:
        if each.validates:
            assert each.case.role is CaseRole.PREDICTION, each.case.name
    assert len(validation.predictions) >= 5


def test_a_case_that_shares_the_source_of_its_constants_is_no_prediction() -> None:
    for case in published().values():
        profile = load_profile(case.profile, dict(map(parse_override, case.overrides)))
        if case.macs or case.network or case.measure is Measure.TIME or case.supply:
            continue
        used = [profile.known(f"energy.{name}") for name in case.events]
        at_rest = (
            "power.static" if case.overhead is Overhead.STATIC_AND_HOST else "power.idle_loaded"
        )
        used += [profile.known(at_rest) or profile.known("power.static")]
        sources = {quantity.src for quantity in used if quantity is not None}
        if case.source in sources or case.line is not None:
            assert case.role is CaseRole.CONSISTENCY, case.name


def test_the_board_that_is_predicted_is_not_the_board_of_the_constants() -> None:
    for case in published().values():
        if case.name.startswith("spinn5"):
            assert case.profile == "spinnaker1"
            assert "spinn5" in case.where


def test_a_wrong_constant_is_caught() -> None:
    case = published()["truenorth-held-out-20Hz"]
    wrong = load_profile("truenorth", {"power.static": "80mW"})
    assert check(case, wrong).holds is False


def test_a_measurement_is_as_certain_as_it_is() -> None:
    case = replace(published()["odin-biological"], measured=120e-6, uncertainty=12e-6)
    assert predict(case).within
    assert not predict(replace(case, uncertainty=0.0)).within


def test_a_point_on_a_line() -> None:
    found = interpolate(Line((1.0, 3.0), (10.0, 20.0), 2.0, 0.5))
    assert (found.value, found.low, found.high) == (15.0, 14.5, 15.5)


def test_a_boundary_that_a_profile_does_not_reach_is_an_error() -> None:
    case = published()["spinn5-silent"]
    inner = replace(case, boundary=Boundary.CORE_DYNAMIC)
    with pytest.raises(ValueError, match="has nothing at core_dynamic"):
        predict(inner)
    # Costs of the cores alone are inside the boundary of the chip.
    core = published()["loihi1-renner-inference"]
    assert predict(replace(core, boundary=Boundary.CHIP_DYNAMIC)).predicted.value > 0
    with pytest.raises(ValueError, match="needs seconds"):
        predict(replace(case, seconds=0.0))


def test_the_calibration_of_a_chip_is_not_that_of_its_variants() -> None:
    assert "energy" in load_profile("spinnaker1").calibration
    assert load_profile("spinnaker1_chip").calibration == {}


def test_a_prediction_without_all_costs_is_a_lower_bound() -> None:
    case = replace(
        published()["odin-biological"],
        profile="seneca",
        boundary=Boundary.CHIP_DYNAMIC,
        overrides=(),
        role=CaseRole.PREDICTION,
        measured=2e-3,
        events={"synop": (1e6, 1e6), "neuron_update": 1e6},
        uncertainty=1e-9,
    )
    above, below = predict(case), predict(replace(case, measured=1e-8))
    assert above.missing == ("neuron update",)
    # One that holds shows little, one that fails counts as a miss.
    assert (above.within, above.validates) == (True, False)
    assert (below.within, below.validates) == (False, True)


def test_a_case_that_cannot_be_predicted_does_not_stop_the_others(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(CASE.replace('profile = "odin"', 'profile = "akida1000"'))
    found = validate_profiles("akida1000", cases=[path])
    assert list(found.unpredicted) == ["mine"]
    assert "has nothing at chip_total" in found.to_json()["unpredicted"]["mine"]


CASE = """
schema = "neuro_eqprop.cases/1"
[[case]]
name = "mine"
profile = "odin"
role = "prediction"
grade = "A"
measure = "W"
measured = 477e-6
uncertainty = 1e-6
boundary = "chip_total"
source = "me"
where = "at home"
seconds = 1.0
events = { synop = [37.0e6, 38.0e6] }
in_range = true
"""


def test_a_users_own_case_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(CASE)
    (case,) = read_cases(path)
    assert case.events == {"synop": (37e6, 38e6)}
    assert predict(case).holds is True


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('role = "prediction"', 'role = "predicted"', "known: prediction"),
        ("measured = 477e-6", "measured = -1", "case[0].measured: expected number >= 0"),
        ("measured = 477e-6", "measured = 0", "zero"),
        ("uncertainty = 1e-6\n", "", "uncertainty is missing"),
        ("synop = [37.0e6, 38.0e6]", "synops = 1", "did you mean 'energy.synop'"),
        ("[37.0e6, 38.0e6]", "[38.0e6, 37.0e6]", "is above high"),
        ("[37.0e6, 38.0e6]", "[1, 2, 3]", "lowest and the highest"),
        ("events = { synop = [37.0e6, 38.0e6] }", "", "nothing to predict from"),
        ("in_range = true", "inrange = true", "did you mean 'in_range'"),
        ("in_range = true", 'overhead = "all"', "known: loaded_idle"),
        ("cases/1", "cases/2", "schema"),
        ("in_range = true", "line = { x = [1, 1], y = [1, 2], at = 1, rounding = 0 }", "same x"),
        (
            "in_range = true",
            "line = { x = [1], y = [1, 2], at = 1, rounding = 0 }",
            "line.x: expected list of length 2",
        ),
    ],
)
def test_a_broken_case_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CASE
    path = tmp_path / "cases.toml"
    path.write_text(CASE.replace(old, new))
    with pytest.raises(FileFormatError) as error:
        read_cases(path)
    assert words in str(error.value)
