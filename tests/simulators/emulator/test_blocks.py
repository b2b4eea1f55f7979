"""Samples that step side by side, in blocks of any size and on threads, equal the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.emulator import packed
from neuro_eqprop.simulators.emulator.simulator import Emulator
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing.case import in_fixed_point, run_case
from neuro_eqprop.simulators.testing.random_networks import attempt_case, on_grid
from neuro_eqprop.spiking.ir import Projection, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.spiking.synapses import DenseSynapses

SAMPLES = 7


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize(("together", "threads"), [(2, 1), (3, 2), (8, 3)])
def test_blocks_and_threads_equal_the_reference(
    number: int, together: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "CACHED", -1)
    monkeypatch.setattr(packed, "TOGETHER", together)
    rng, case = np.random.default_rng(number), attempt_case(33, number, attempt=0)

    def drawn(sizes: Mapping[str, Array]) -> dict[str, Array]:
        return {n: on_grid(rng.uniform(-1, 1, (SAMPLES, a.shape[1]))) for n, a in sizes.items()}

    stimulus = Stimulus(SAMPLES, drawn(case.stimulus.current), drawn(case.stimulus.pull))
    case = replace(case, stimulus=stimulus)
    for each in (case, in_fixed_point(case, Rounding(8))):
        found = run_case(Emulator(threads=threads), each)
        wanted = run_case(load_backend("reference"), each)
        for kind in ("messages", "firing", "drive"):
            for name, values in getattr(wanted.result, kind).items():
                assert np.array_equal(getattr(found.result, kind)[name], values), (kind, name)
        for own, other in zip(found.recordings, wanted.recordings, strict=True):
            assert own.spikes.keys() == other.spikes.keys()
            assert all(np.array_equal(own.spikes[n], v) for n, v in other.spikes.items())
            assert all(np.array_equal(own.signals[n], v) for n, v in other.signals.items())


def test_tables_follow_weights_that_change_in_place_whatever_their_layout() -> None:
    case = attempt_case(33, 0, attempt=0)
    names = [population.name for population in case.network.populations]
    sizes = [population.size for population in case.network.populations]
    weight = np.zeros((sizes[0], sizes[1])).T  # columns are adjacent
    projection = Projection(names[0], names[1], DenseSynapses(weight))
    network = SpikingNetwork(1e-3, case.network.populations, (projection,), names[-1])
    emulator = Emulator()
    before = emulator.tables(network)
    assert emulator.tables(network) is before
    weight[1, 2] = 0.5
    assert emulator.tables(network) is not before
