"""Placement of networks on cores."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuro_eqprop.chips.noc_traffic import Mesh, mean_hops, noc_traffic
from neuro_eqprop.chips.placement import CoreAllocation, PlacementStatus, place
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.profiles.load import load_profile, load_profiles
from neuro_eqprop.chips.synapse_memory import MemoryFormat
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    ProjectionShape,
    dense_projection,
    network_shape,
)
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import convolutional
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding, outer, with_input
from neuro_eqprop.spiking.ir import (
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.spiking.lower import lower


def layered(inputs: int, hidden: int, outputs: int, *, looped: bool = False) -> NetworkShape:
    """Input from outside, a hidden layer and an output that feeds back."""
    i, h, o = (
        PopulationShape("input", inputs, off_chip=True),
        PopulationShape("hidden", hidden),
        PopulationShape("output", outputs),
    )
    links = [
        dense_projection(i, h, bits=8),
        dense_projection(h, o, bits=8),
        dense_projection(o, h, bits=8),
    ]
    if looped:
        links.append(dense_projection(h, h, bits=8))
    return NetworkShape((i, h, o), tuple(links), "output")


@pytest.fixture(scope="module")
def loihi() -> Profile:
    return load_profile("loihi1")


@pytest.mark.parametrize(
    ("shapes", "plain", "tag8", "tag9"),
    [
        (layered(784, 256, 10), 3, 5, 5),
        (layered(784, 256, 10, looped=True), 4, 6, 6),
        (layered(784, 500, 10), 5, 8, 9),
        (layered(784, 1000, 10, looped=True), 17, 30, 32),
    ],
)
def test_cores_on_loihi_are_those_of_its_memory_formula(
    loihi: Profile, shapes: NetworkShape, plain: int, tag8: int, tag9: int
) -> None:
    assert place(shapes, loihi).cores == plain
    assert place(shapes.make_plastic(), loihi, tag_bits=8).cores == tag8
    assert place(shapes.make_plastic(), loihi).cores == tag9
    assert place(shapes, loihi).status is PlacementStatus.FITS
    assert place(shapes, loihi).binding == "synapse memory"


def axon_bits(n: int, bits: int) -> int:
    """The memory of an axon, block by block."""
    total = 0
    while n > 0:
        block = min(n, 64)
        words = -(-(block * bits + 10) // 64)
        total += 64 * words
        n -= block
    return total


@given(n=st.integers(0, 1000), bits=st.integers(1, 30))
def test_the_memory_of_an_axon_is_the_sum_of_its_blocks(n: int, bits: int) -> None:
    layout = MemoryFormat(64, 10, 64, 0, (), ())
    assert layout.axon_bits(n, bits) == axon_bits(n, bits)


def test_no_core_is_overfull_and_one_neuron_more_would_be(loihi: Profile) -> None:
    placement = place(layered(784, 500, 10), loihi)
    for allocation in placement.allocations:
        assert all(0 <= part <= 1 for part in allocation.used.values())
    hidden = placement["hidden"]
    used = 794 * axon_bits(hidden.neurons_per_core, 8) / 2**20
    assert hidden.used["synapse memory"] == pytest.approx(used)
    assert 794 * axon_bits(142, 8) <= 2**20 < 794 * axon_bits(143, 8)
    assert hidden.cores == -(-500 // 142)


def test_a_soft_reset_takes_a_second_compartment(loihi: Profile) -> None:
    groups = (PopulationShape("a", 1000, soft_reset=True), PopulationShape("b", 1))
    shapes = NetworkShape(groups, (dense_projection(*groups, bits=8),), "b")
    assert place(shapes, loihi)["a"].cores == 2
    assert place(shapes, loihi)["a"].binding == "neurons"
    assert place(shapes, loihi, soft_reset=False)["a"].cores == 1
    assert place(shapes, loihi, soft_reset=True)["b"].compartments == 2
    assert place(shapes, load_profile("spinnaker1"), soft_reset=True)["a"].compartments == 1


def test_delays_and_sparse_indices_cost_memory(loihi: Profile) -> None:
    a, b = PopulationShape("a", 4000), PopulationShape("b", 128)
    dense = dense_projection(a, b, bits=8)
    base = place(NetworkShape((a, b), (dense,), "b"), loihi)["b"].cores
    late = replace(dense, delay=9)
    assert place(NetworkShape((a, b), (late,), "b"), loihi)["b"].cores > base
    half = replace(dense, synapses=dense.synapses // 4, max_fan_in=1000, max_fan_out=32)
    assert place(NetworkShape((a, b), (half,), "b"), loihi)["b"].cores < base


def test_a_fan_in_limit_is_not_met_by_more_chips() -> None:
    placement = place(layered(784, 256, 10), load_profile("truenorth"))
    assert placement.status is PlacementStatus.DOES_NOT_FIT
    fan_in = next(v for v in placement.violations if v.limit == "fan-in")
    assert "794" in fan_in.reason
    assert not fan_in.curable
    assert placement.cores is None


def test_too_few_chips_are_cured_by_more(loihi: Profile) -> None:
    shapes = layered(784, 3000, 10, looped=True).make_plastic()
    needed = place(shapes, loihi)
    assert (needed.cores, needed.chips, needed.status) == (216, 2, PlacementStatus.FITS)
    assert needed.used["cores"] == 216 / 256
    tight = place(shapes, loihi, chips=1)
    assert tight.status is PlacementStatus.DOES_NOT_FIT
    assert [(v.limit, v.curable) for v in tight.violations] == [("chips", True)]
    assert place(layered(64, 5000, 10), load_profile("spinnaker1"), chips=1).binding == "chips"
    assert place(layered(64, 5000, 10), load_profile("spinnaker1")).status is PlacementStatus.FITS


def test_memory_that_a_chip_shares_asks_for_chips() -> None:
    spinnaker = load_profile("spinnaker1_spinn5")
    a, b = PopulationShape("a", 30000), PopulationShape("b", 2000)
    shapes = NetworkShape((a, b), (dense_projection(a, b, bits=16),), "b")
    placement = place(shapes, spinnaker)
    bits = 30000 * 2000 * 32
    assert placement.chips == max(-(-bits // (128 * 2**20 * 8)), -(-(118 + 8) // 16))


def test_populations_share_a_core_where_the_chip_lets_them() -> None:
    small = (
        PopulationShape("hidden", 100),
        PopulationShape("output", 10),
        PopulationShape("more", 40),
    )
    links = tuple(dense_projection(a, b, bits=4) for a, b in itertools.pairwise(small))
    odin = load_profile("odin")
    together = place(NetworkShape(small, links, "output"), odin)
    assert (together.cores, together.chips) == (1, 1)
    assert [allocation.first_core for allocation in together.allocations] == [0, 0, 0]
    assert together.used["neurons"] == 150 / 256
    assert together.used["synapses"] == (1000 + 400) / 65536
    large = (
        PopulationShape("hidden", 200),
        PopulationShape("output", 100),
        PopulationShape("more", 50),
    )
    spread = place(NetworkShape(large, (dense_projection(*large[:2], bits=4),), "output"), odin)
    assert [allocation.first_core for allocation in spread.allocations] == [0, 1, 0]
    assert (spread.cores, spread.chips) == (2, 2)
    assert spread.used["neurons"] == 250 / 256
    alone = place(layered(64, 128, 10), load_profile("loihi1"))
    assert [allocation.first_core for allocation in alone.allocations] == [0, 1]


def test_one_neuron_that_no_core_takes_has_no_placement(loihi: Profile) -> None:
    placement = place(layered(5000, 10, 10), loihi)
    assert placement.status is PlacementStatus.DOES_NOT_FIT
    assert placement.binding == "in-axons"
    assert "5010 in-axons of a core's 4096" in placement.violations[0].reason


def test_what_is_not_known_forbids_to_say_that_it_fits() -> None:
    known = load_profile("loihi2")
    entries = {k: e for k, e in known.entries.items() if k != "capacity.synapse_bits_per_core"}
    placement = place(layered(64, 128, 10), replace(known, entries=entries))
    assert placement.status is PlacementStatus.UNKNOWN
    assert "synapse memory" in [each.limit for each in placement.unchecked if each.essential]
    nowhere = place(layered(64, 128, 10), load_profile("spinnaker2"))
    assert (nowhere.status, nowhere.cores) == (PlacementStatus.UNKNOWN, None)


def test_the_state_is_not_checked_unless_its_bits_are_given(loihi: Profile) -> None:
    shapes = layered(64, 128, 10)
    assert "state bits" in [each.limit for each in place(shapes, loihi).unchecked]
    assert place(replace(shapes, state_bits=24), loihi).unchecked == ()
    assert place(replace(shapes, state_bits=25), loihi).status is PlacementStatus.DOES_NOT_FIT


@pytest.mark.parametrize(
    ("name", "limit"),
    [("akida1000", "steps"), ("truenorth", "weight bits"), ("xylo_a2", "inputs")],
)
def test_chips_that_cannot_do_it_at_all_say_so(name: str, limit: str) -> None:
    placement = place(layered(64, 128, 10), load_profile(name))
    assert placement.status is PlacementStatus.DOES_NOT_FIT
    assert limit in [each.limit for each in placement.violations if not each.curable]


def test_graded_messages_and_long_delays_are_asked_for(loihi: Profile) -> None:
    a = PopulationShape("a", 10, graded=True)
    link = replace(dense_projection(a, a, bits=8), delay=20)
    shapes = NetworkShape((a,), (link,), "a")
    assert "graded spikes" in [e.limit for e in place(shapes, loihi).unchecked if e.essential]
    truenorth = [e.limit for e in place(shapes, load_profile("truenorth")).violations]
    assert {"graded spikes", "delays"} <= set(truenorth)


def test_learning_needs_a_chip_that_learns() -> None:
    shapes = layered(64, 128, 10).make_plastic()
    assert "learning" in [e.limit for e in place(shapes, load_profile("truenorth")).violations]
    doubt = place(shapes, load_profile("spinnaker1"))
    assert "learning tag" in [e.limit for e in doubt.unchecked if e.essential]


def test_a_billion_synapses_are_placed_in_seconds(loihi: Profile) -> None:
    groups = tuple(PopulationShape(f"g{k}", 100_000) for k in range(10))
    links = tuple(
        ProjectionShape(f"g{k}", f"g{(k + 1) % 10}", 10**8, 1000, 1000) for k in range(10)
    )
    began = time.perf_counter()
    shapes = NetworkShape(groups, links, "g0")
    placement = place(shapes, loihi)
    found = noc_traffic(shapes, placement, loihi)
    assert time.perf_counter() - began < 10
    assert sum(link.synapses for link in links) == 10**9
    assert placement.cores is not None
    assert placement.chips == -(-placement.cores // 128)
    assert found["g0"].chip_links > 0


def test_more_cores_need_more_axons_until_both_agree() -> None:
    (tight,) = load_profiles(["loihi1"], ["loihi1.capacity.out_axons_per_core=64"])
    groups = (PopulationShape("a", 64), PopulationShape("b", 2048))
    shapes = NetworkShape(groups, (dense_projection(*groups, bits=1),), "b")
    placement = place(shapes, tight)
    assert placement["b"].cores == 2
    assert placement["a"].cores == 2
    assert placement["a"].used["out-axons"] == 1.0
    (none,) = load_profiles(["loihi1"], ["loihi1.capacity.out_axons_per_core=1"])
    assert place(shapes, none).binding == "out-axons"


def neuron(reset: Reset) -> Spiking:
    return Spiking(1.0, 0.0, 1.0, reset, -1.0, 2.0)


def test_a_network_is_described_by_its_weights() -> None:
    weight = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    network = SpikingNetwork(
        1e-3,
        (
            Population("a", neuron(Reset.SUBTRACT), np.zeros(3)),
            Population("b", neuron(Reset.ZERO), np.zeros(2)),
            Population("c", Graded(HARD_SIGMOID, 0.1, 0.5), np.zeros(2)),
        ),
        (Projection("a", "b", weight, delay=2), Projection("b", "c", np.ones((2, 2)))),
        "c",
    )
    shapes = network_shape(network, bits=6)
    assert [g.soft_reset for g in shapes.populations] == [True, False, False]
    assert [g.graded for g in shapes.populations] == [False, False, True]
    assert shapes.projections[0] == ProjectionShape("a", "b", 3, 2, 2, bits=6, delay=2)
    assert shapes.dense(shapes.projections[1])
    assert not shapes.dense(shapes.projections[0])
    assert not shapes.recurrent
    assert layered(2, 2, 2).recurrent


def test_a_convolution_is_described_and_placed_by_its_synapses(loihi: Profile) -> None:
    hard = HARD_SIGMOID
    rate = convolutional((1, 8, 8), (3,), 10, kernel=5, hidden_rate=hard, output_rate=hard)
    params = initialize(rate, np.random.default_rng(0))
    network = lower(rate, params, dt=1e-3, coding=Coding(Code.GRADED), nudged=False)
    made = with_input(rate, params, network, coding=Coding(Code.GRADED), entry=InputCoding.GRADED)
    shapes = network_shape(made, bits=8, off_chip=outer(rate))
    weights = {p.name: p.weight for p in made.projections}
    for link in shapes.projections:
        there = weights[link.name] != 0
        assert link.synapses == there.sum()
        assert link.max_fan_in == there.sum(axis=1).max()
        assert link.max_fan_out == there.sum(axis=0).max()
    first = next(link for link in shapes.projections if link.source == "input")
    assert 9 <= first.max_fan_in <= 25
    assert not shapes.dense(first)
    placement = place(shapes, loihi)
    assert {allocation.name for allocation in placement.allocations} == {
        g.name for g in shapes.on_chip
    }
    assert "input" not in {allocation.name for allocation in placement.allocations}
    assert placement.cores == len(placement.allocations)


@pytest.mark.parametrize(("first", "cores"), [((0, 9), (9, 40)), ((100, 60), (20, 200))])
def test_hops_are_the_mean_over_all_pairs_of_cores(
    first: tuple[int, int], cores: tuple[int, int]
) -> None:
    grid = Mesh(128, 4, 8, 4)
    source = CoreAllocation("a", first[1], 1, 1, "", first_core=first[0])
    target = CoreAllocation("b", cores[1], 1, 1, "", first_core=cores[0])
    sums, away = [0, 0], 0
    for p, q in itertools.product(range(*span(source)), range(*span(target))):
        if p // 128 != q // 128:
            away += 1
            continue
        one, other = (p % 128) // 4, (q % 128) // 4
        sums[0] += abs(one % 8 - other % 8)
        sums[1] += abs(one // 8 - other // 8)
    pairs = source.cores * target.cores
    assert mean_hops(grid, source, target) == pytest.approx(
        (sums[0] / pairs, sums[1] / pairs, away / pairs)
    )


def span(allocation: CoreAllocation) -> tuple[int, int]:
    return allocation.first_core, allocation.first_core + allocation.cores


def test_messages_go_to_every_core_that_holds_targets(loihi: Profile) -> None:
    shapes = layered(784, 500, 10)
    placement = place(shapes, loihi)
    found = noc_traffic(shapes, placement, loihi)
    assert found["hidden"].messages == 1
    assert found["output"].messages == 4
    assert found["input"].messages == 4
    assert found["input"].hops_ew == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PopulationShape("a", 0),
        lambda: ProjectionShape("a", "b", 4, 5, 1),
        lambda: ProjectionShape("a", "b", 4, 1, 1, delay=0),
        lambda: NetworkShape((PopulationShape("a", 1), PopulationShape("a", 1)), (), "a"),
        lambda: NetworkShape((PopulationShape("a", 1),), (), "b"),
        lambda: NetworkShape(
            (PopulationShape("a", 1),), (ProjectionShape("a", "b", 1, 1, 1),), "a"
        ),
        lambda: NetworkShape(
            (PopulationShape("a", 1),), (ProjectionShape("a", "a", 2, 1, 1),), "a"
        ),
        lambda: NetworkShape(
            (PopulationShape("a", 1, off_chip=True),), (ProjectionShape("a", "a", 1, 1, 1),), "a"
        ),
    ],
)
def test_shapes_that_cannot_be_are_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=r"populations|projection|neurons|output"):
        wrong()
