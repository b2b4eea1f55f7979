"""The public names: `dir`, docstrings, and their examples, executed."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize

NETWORK = layered(6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
NAMES = [name for name in ne.__all__ if name != "__version__"]
CONTRACT = [
    "train",
    "learn_on_chip",
    "compare",
    "report",
    "load_data",
    "open_run",
    "open_trace",
    "from_torch",
    "load_profile",
    "check_backend",
    "Model",
    "SpikingModel",
    "Simulation",
    "Trace",
    "Dataset",
    "Network",
    "EqPropClassifier",
]
PYTHON = [sys.executable, "-c"]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The files that examples name."""
    run, data = tmp_path_factory.mktemp("examples") / "run", ne.load_data("digits")
    model = ne.train("layered", data, hidden=(16,), epochs=1, out=run)
    x, y = data.test.x[:6], data.test.y[:6]
    model.record(x, y, phases=True, out=run / "rates.h5")
    model.to_spiking().record(
        x, y, phases=True, record=["hidden:voltage", "output:voltage"], out=run / "traces.h5"
    )
    spikes = run / "traces.h5"
    return {
        "example_run": run,
        "example_rates": run / "rates.h5",
        "example_spikes": spikes,
        "example_trace": spikes,
    }


def documented(name: str) -> Iterator[tuple[str, object]]:
    """A public object and, of a class, its public methods and properties."""
    found = getattr(ne, name)
    yield name, found
    if inspect.isclass(found):
        for key, member in vars(found).items():
            if not key.startswith("_") and (callable(member) or isinstance(member, property)):
                yield f"{name}.{key}", member


def test_dir_shows_the_public_names() -> None:
    assert set(dir(ne)) == set(ne.__all__)
    assert set(CONTRACT) <= set(NAMES)


def test_importing_the_package_loads_no_torch_and_no_numpy() -> None:
    code = "import sys, neuro_eqprop; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([*PYTHON, code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_docstring_with_an_example_that_runs(
    name: str,
    examples: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    own = getattr(ne, name)
    ran: list[str] = []
    for label, member in documented(name):
        assert inspect.getdoc(member), f"{label} has no docstring"
        for test in finder.find(member, label, globs={name: own, "ne": ne, **examples}):
            if test.examples:
                ran.append(label)
                failed, _ = runner.run(test)
                assert not failed, label
    assert name in ran, f"{name} has no example"


def test_a_wrong_option_or_type_names_what_exists() -> None:
    spiking = Model(NETWORK, initialize(NETWORK, np.random.default_rng(0))).to_spiking()
    calls: list[tuple[Callable[..., object], dict[str, object]]] = [
        (spiking.to_lava, {"reset": 3}),
        (spiking.to_brian2, {"continuous": True, "tau": 3}),
        (spiking.to_snntorch, {"surogate": 3}),
        (spiking.model.to_torch, {"until": 3}),
    ]
    for call, options in calls:
        wrong = list(options)[-1]
        with pytest.raises(UnknownNameError, match=rf"unknown option .* '{wrong}'; known: \w+"):
            call(**options)
    with pytest.raises(UnknownNameError, match="unknown setting 'bit'; known: bits"):
        ne.learn_on_chip("layered", "digits", on="emulator", bit=8)
    with pytest.raises(TypeError, match="name of a model, a Network"):
        ne.train(None, "digits")
    with pytest.raises(TypeError, match="from_torch converts other modules"):
        ne.from_snntorch(3)  # type: ignore[arg-type]
