"""Look-ups by a wrong name raise an error that lists what exists, closest first."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.chips.placement import place
from neuro_eqprop.chips.workload import NetworkShape, PopulationShape
from neuro_eqprop.common.arrays import NamedDict, UnknownNameError

Lookup = Callable[["Nouns"], object]


class Nouns:
    """One of each public noun with look-ups."""

    def __init__(self, folder: Path) -> None:
        self.data = ne.load_data("digits")
        x = self.data.test.x[:2]
        self.model = ne.train("layered", self.data, hidden=(8,), epochs=1)
        self.spiking = self.model.to_spiking()
        self.simulation = self.spiking.run(x, on="reference", steps=8)
        self.trace = self.model.record(x, steps=5, record=["hidden->output:hebbian"])
        self.stored = ne.open_trace(self.trace.save(folder / "trace.h5"))
        self.profile = ne.load_profile("loihi1")
        self.equilibrium = self.model.equilibrium(x)


@pytest.fixture(scope="module")
def nouns(tmp_path_factory: pytest.TempPathFactory) -> Nouns:
    return Nouns(tmp_path_factory.mktemp("lookups"))


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        (lambda n: n.model.network["hiden"], "unknown layer 'hiden'; known: hidden, "),
        (lambda n: n.model.network.parameters()["hiden"], "parameter 'hiden'; known: hidden, "),
        (lambda n: n.model.params["input->hiden"], "known: input->hidden, "),
        (lambda n: n.spiking.network["hiden"], "unknown population 'hiden'; known: hidden, "),
        (lambda n: n.simulation.rates["hiden"], "unknown layer 'hiden'; known: hidden, "),
        (lambda n: n.simulation.counts["hidden", "fre"], "known: hidden:free, "),
        (lambda n: n.equilibrium.state["hiden"], "unknown layer 'hiden'; known: hidden, "),
        (lambda n: n.trace.signals["hidden", "rat"], "'hidden:rat'; known: hidden:rate, "),
        (lambda n: n.trace.spikes["hidden"], "recorded spikes 'hidden'; known: none"),
        (lambda n: n.trace.hebbian["hidden->out"], "synapses 'hidden->out'; known: hidden->output"),
        (lambda n: n.trace.weights["hidden->out"], "known: hidden->output, "),
        (lambda n: n.stored.weights["hidden->out"], "known: hidden->output, "),
        (lambda n: n.stored.signals["hidden", "rat"], "'hidden:rat'; known: hidden:rate, "),
        (lambda n: n.trace.epochs["los"], "metric of an epoch 'los'; known: none"),
        (lambda n: n.profile.known("energy.synopp"), "known: energy.synop, "),
        (lambda n: n.profile.limit("neurons"), "known: capacity.neurons_per_core, "),
        (lambda n: n.profile.entries["energy.synopp"], "known: energy.synop, "),
        (lambda n: n.profile.sources["none"], "unknown source 'none'; known: "),
        (lambda n: n.data.parts["tests"], "unknown split 'tests'; known: test, train"),
        (lambda n: n.model.history["epochs"], "unknown column of the history 'epochs'"),
    ],
)
def test_a_wrong_name_lists_what_exists_closest_first(
    look_up: Lookup, message: str, nouns: Nouns
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        look_up(nouns)
    assert message in str(caught.value)


def test_a_placement_names_its_populations() -> None:
    shape = NetworkShape((PopulationShape("hidden", 4),), (), "hidden")
    with pytest.raises(UnknownNameError, match="known: hidden"):
        shape["hiden"]
    with pytest.raises(UnknownNameError, match="known: hidden"):
        place(shape, ne.load_profile("loihi1"))["hiden"]


def test_other_uses_of_a_mapping_stay_those_of_a_dict() -> None:
    named = NamedDict("layer", {"hidden": 1})
    assert named == {"hidden": 1}
    assert "hiden" not in named
    assert named.get("hiden") is None
    assert pickle.loads(pickle.dumps(named)) == named
    with pytest.raises(KeyError, match="unknown layer 'hiden'; known: hidden"):
        named["hiden"]


def test_accuracy_needs_a_class_for_each_sample(nouns: Nouns) -> None:
    with pytest.raises(ValueError, match=r"y has shape \(3,\).*2 samples"):
        nouns.simulation.accuracy([1, 2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda n: n.spiking.run(n.data.test.x[:2], steps="32"),
            "steps must be an integer .* '32'",
        ),
        (lambda n: n.model.evaluate((n.data.test.x,)), "a pair .* not 1 arrays"),
        (lambda n: n.model.evaluate((n.data.test.x, [1, 2])), "360 samples have 2 labels"),
        (lambda n: n.model.evaluate(3), "a Split, a Dataset or a pair .* not an int"),
        (
            lambda n: ne.sweep(None, "runs"),  # type: ignore[arg-type]
            "a sweep is a TOML file, a mapping or a Sweep",
        ),
        (
            lambda n: ne.compare(n.trace, 2),  # type: ignore[arg-type]
            "compare takes a trace or its file, not an int",
        ),
        (
            lambda n: ne.report(None),  # type: ignore[arg-type]
            "report takes a run folder, a Run or a Model, not None",
        ),
        (
            lambda n: ne.load_data(n.data.test.x),
            r"a data frame or a mapping of columns, not an ndarray; ne.Dataset\(x, y\) makes",
        ),
        (
            lambda n: ne.learn_on_chip(n.model, n.data),
            "the name of a model or a Network first, not a Model",
        ),
        (
            lambda n: ne.load_backend(5),  # type: ignore[arg-type]
            "a backend is a name or an object with `run`, not an int",
        ),
        (
            lambda n: ne.pair_protocol(5),  # type: ignore[arg-type]
            "a learner is a name or an object with `learn`, not an int",
        ),
        (
            lambda n: ne.estimate_energy(n.simulation, 5),  # type: ignore[call-overload]
            "profiles is an int; name a chip",
        ),
        (
            lambda n: ne.train("layered", n.data, progress=5),  # type: ignore[arg-type]
            "progress is an int; give a function",
        ),
        (
            lambda n: n.spiking.record(n.data.test.x[:1], record=5),
            r"record is an int; give a list such as \['hidden:drive'\]",
        ),
        (
            lambda n: n.spiking.record(n.data.test.x[:1], record=["hidden"]),
            "signal to record .* 'hidden'; known: hidden:drive, hidden:spikes, hidden:voltage",
        ),
        (
            lambda n: n.spiking.record(n.data.test.x[:1], record=["hidden->output[a,0]:hebbian"]),
            r"\[a,0\] names no synapse",
        ),
        (
            lambda n: n.spiking.to_snntorch(surrogate="atan"),
            "surrogate is a str; give a function of snntorch.surrogate",
        ),
        (
            lambda n: n.trace.load(samples=1),
            "samples is an int; give a slice",
        ),
        (lambda n: n.trace.plot_settling("hidden", units=0), "units is 0"),
        (
            lambda n: ne.spike_timing(5, "a->b"),  # type: ignore[arg-type]
            "spike_timing takes a trace or its file, not an int",
        ),
        (
            lambda n: ne.trace_summary(n.trace),
            "reads a file, not a Trace; Trace.save writes",
        ),
        (lambda n: ne.from_nir(5), "the graph is an int; give a .nir file"),
        (
            lambda n: ne.from_torch(5, 3),  # type: ignore[arg-type]
            "takes a torch.nn.Module first, not an int",
        ),
        (lambda n: ne.open_trace("/tmp"), "/tmp is a folder; name a trace file in it"),
        (lambda n: ne.Dataset(np.zeros((0, 4)), np.zeros(0, int)), "holds no samples"),
        (lambda n: n.model.predict("a"), "x holds no array of numbers"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(call: Lookup, message: str, nouns: Nouns) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(nouns)


def test_a_pair_of_arrays_is_evaluated_like_a_split(nouns: Nouns) -> None:
    test = nouns.data.test
    assert nouns.model.evaluate((test.x, test.y)).accuracy == nouns.model.evaluate(test).accuracy
