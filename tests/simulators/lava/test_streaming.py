"""Samples of a run on Lava reach the sink while the run goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava.recording import layouts
from neuro_eqprop.simulators.lava.simulator import SampleStream
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.spiking.ir import Population, Reset, Spiking, SpikingNetwork, Stimulus

NEURON = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)


def test_a_sample_is_passed_on_when_all_its_rows_are_written(tmp_path: Path) -> None:
    populations = tuple(Population(name, NEURON, np.zeros(2)) for name in ("a", "b"))
    network = SpikingNetwork(1e-3, populations, (), "b")
    stimulus = Stimulus(3, {"a": np.zeros((3, 2))}, {})
    record = Record(spikes=frozenset({"a", "b"}))
    experiment = Experiment(network, stimulus, free_only(steps=4, window=2), record)
    sink = MemorySink()
    stream = SampleStream(experiment, tmp_path, sink)
    stream.poll()
    assert not sink.recordings
    tables = [layouts(experiment, tmp_path, name)["spikes"] for name in ("a", "b")]
    for table in tables:
        table.create()
    stream.poll()
    assert not sink.recordings
    tables[0].append(np.ones((1, 4, 2)))
    stream.poll()
    assert not sink.recordings
    tables[1].append(np.zeros((1, 4, 2)))
    stream.poll()
    assert len(sink.recordings) == 1
    assert sink.recordings[0].spikes["a"].all()
    assert not sink.recordings[0].spikes["b"].any()
    for table in tables:
        with table.path.open("ab") as file:
            file.write(b"\0" * 3)  # part of a row
    stream.poll()
    assert len(sink.recordings) == 1
