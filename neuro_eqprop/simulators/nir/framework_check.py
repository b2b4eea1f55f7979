"""Run a NIR file on other frameworks, each in a child process; compare with the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.files import isolated, subprocess
from neuro_eqprop.files.arrays import write_npy
from neuro_eqprop.files.read import one_line
from neuro_eqprop.files.write import temporary_folder, write_text
from neuro_eqprop.simulators.base import Feature
from neuro_eqprop.simulators.experiment import Experiment, load, save
from neuro_eqprop.simulators.nir.assume import Assumptions, find_assumptions
from neuro_eqprop.simulators.nir.document import Document
from neuro_eqprop.simulators.nir.read import read
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import BACKENDS, installed, load_backend, with_features
from neuro_eqprop.spiking.ir import Stimulus

GRID = 2.0**-12
"""Random inputs are multiples of it, so that the backends agree bit for bit."""
INPUT = "input"
"""The population of an input that is coded as spikes."""
TASK, INPUTS, OUTPUTS = "task.json", "inputs.npy", "outputs.npy"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
IMPORTERS = ("snntorch", "norse", "sinabs", "rockpool", "spikingjelly", "spyx")
"""Frameworks that read NIR; some run code when imported, so they are only searched for."""


class Verdict(Enum):
    """How the output of a framework compares with the reference."""

    EQUAL = "equal"
    DIFFERENT = "different"
    FAILS = "not at all"
    ABSENT = "not installed"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result for a framework: who reads the file for it, and how its output compares."""

    framework: str
    version: str | None
    reader: str
    """`neuro_eqprop` or the framework's own importer."""
    result: Verdict
    equal: float | None
    """Fraction of output values, over samples, steps and units, that equal the reference."""
    note: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The inputs of a check, held constant for `steps` steps, and the output of the reference."""

    path: Path
    document: Document
    inputs: Array
    steps: int
    expected: Array
    sent: Array
    """What the input sends in each step (samples, steps, features)."""

    @property
    def latency(self) -> int:
        """Steps by which the output is later here than in the framework of the file."""
        return int(self.document.notes.get("foreign", {}).get("latency", 0))

    @property
    def experiment(self) -> Experiment:
        """The trial for a backend."""
        return experiment_of(self.document, self.inputs, self.steps)


@dataclass(frozen=True, slots=True)
class FrameworkCheck:
    """A NIR file run on the reference and on other frameworks."""

    trial: Trial
    findings: list[Finding]

    def to_json(self) -> dict[str, Any]:
        """The fields of `nir doctor --json`."""
        trial = self.trial
        frameworks = [asdict(each) for each in self.findings]
        return {
            "file": str(trial.path),
            "digest": trial.document.network.digest,
            "steps": trial.steps,
            "samples": len(trial.inputs),
            "values": int(trial.expected.size),
            "events": int((trial.expected != 0).sum()),
            "frameworks": [each | {"verdict": each.pop("result").value} for each in frameworks],
        }


def check_nir(
    path: str | Path,
    *,
    only: Sequence[str] = (),
    samples: int = 4,
    steps: int = 64,
    assume: str | Assumptions | None = None,
    deadline: float = 60.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> FrameworkCheck:
    """Run a NIR file on the installed frameworks, each in a child process, and compare.

    Parameters
    ----------
    path : str or Path
        The NIR file.
    only : sequence of str
        Frameworks to run; all if empty.
    samples : int
        Random inputs, held constant.
    steps : int
        Steps of the run.
    assume : str or Assumptions, optional
        What a file of another framework does not state, see `neuro_eqprop.from_nir`.
    deadline : float
        Seconds without progress after which a framework fails.
    progress : callable, optional
        Called with the last framework, the number done and the number of all.

    Returns
    -------
    FrameworkCheck
        For each framework, whether its output equals that of the reference.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> run = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/nir")
    >>> _ = ne.open_run("runs/nir").translate("checked.nir")
    >>> found = ne.check_nir("checked.nir", only=["emulator"], steps=16)
    >>> found.findings[0].result.value
    'equal'
    """
    for name in only:
        if name not in (*OURS, *IMPORTERS):
            raise UnknownNameError("framework", name, {*OURS, *IMPORTERS})
    # snnTorch is here twice: this package reads the file for it, or its own importer does.
    every = [(name, True) for name in OURS] + [(name, False) for name in IMPORTERS]
    chosen = [(name, ours) for name, ours in every if not only or name in only]
    path = Path(path)
    document = read(path, None if assume is None else find_assumptions(assume))
    trial = prepare(path, document, samples=samples, steps=steps)
    findings = []
    for name, ours in chosen:
        findings.append(examine(trial, name, ours=ours, deadline=deadline))
        if progress is not None:
            progress(name, len(findings), len(chosen))
    return FrameworkCheck(trial, findings)


def prepare(path: Path, document: Document, *, samples: int, steps: int) -> Trial:
    """Draw inputs between zero and one, and run the reference."""
    rng = np.random.default_rng(0)
    inputs = np.rint(rng.random((samples, document.features)) / GRID) * GRID
    experiment = experiment_of(document, inputs, steps)
    expected, sent = simulated("reference", experiment), np.repeat(inputs[:, None], steps, axis=1)
    if is_coded(document):
        sent = simulated("reference", experiment, document.feeds[0].target)
    return Trial(path, document, inputs, steps, expected, sent)


def is_coded(document: Document) -> bool:
    """Whether the input of a graph of another framework is coded as spikes."""
    return "foreign" in document.notes and document.feeds[0].target == INPUT


def experiment_of(document: Document, inputs: Array, steps: int) -> Experiment:
    """A free run with the inputs as currents; the output is recorded."""
    network = document.network
    current = {} if document.feeds else {network.populations[0].name: inputs}
    for feed in document.feeds:
        brought = feed.synapses.apply(inputs)
        if "foreign" not in document.notes:
            brought = np.rint(brought / GRID) * GRID
        current[feed.target] = current.get(feed.target, 0.0) + brought
    record = Record(frozenset({network.output, *(f.target for f in document.feeds)}))
    stimulus = Stimulus(len(inputs), current, {})
    return Experiment(network, stimulus, free_only(steps=steps, window=steps), record)


def simulated(name: str, trial: Experiment, population: str | None = None) -> Array:
    """What a population sends in an experiment on a backend: the output (samples, steps, units)."""
    sink = MemorySink()
    load_backend(name).run(
        trial.network, trial.stimulus, trial.schedule, record=trial.record, sink=sink
    )
    wanted = population or trial.network.output
    return np.stack([recording.spikes[wanted] for recording in sink.recordings])


def examine(trial: Trial, framework: str, *, ours: bool, deadline: float) -> Finding:
    """Run one framework and compare; it fails after `deadline` seconds without progress."""
    reader = "neuro_eqprop" if ours else framework

    def found(result: Verdict, note: str, equal: float | None = None) -> Finding:
        return Finding(framework, installed_version(framework), reader, result, equal, note)

    if not ours and find_spec(framework) is None:
        return found(Verdict.ABSENT, "")
    if not ours and framework not in RUNNERS:
        return found(Verdict.UNTRIED, "running its importer is not implemented")
    try:
        got = attempt(trial, framework, ours=ours, deadline=deadline)
    except subprocess.ChildError as error:
        return found(Verdict.FAILS, one_line(str(error).partition("\n")[0]))
    expected = trial.expected
    if got.shape != expected.shape:
        return found(Verdict.DIFFERENT, f"output of shape {got.shape[1:]} a sample", 0.0)
    if not ours and trial.latency:
        got, expected = got[:, : -trial.latency], expected[:, trial.latency :]
    equal = float(np.mean(got == expected))
    note = f"{np.count_nonzero(got)} events at the output, {np.count_nonzero(expected)} here"
    return found(Verdict.EQUAL if equal == 1.0 else Verdict.DIFFERENT, note, equal)


def installed_version(framework: str) -> str | None:
    """The installed version of a framework, or None."""
    requires = BACKENDS[framework].requires if framework in BACKENDS else {framework: ""}
    return installed(next(iter(requires), framework))


def attempt(trial: Trial, framework: str, *, ours: bool, deadline: float) -> Array:
    """The output of the framework, run in a child process."""
    with temporary_folder() as folder:
        save(trial.experiment, folder)
        write_npy(folder / INPUTS, trial.sent)
        task = {"framework": framework, "ours": ours, "steps": trial.steps}
        write_text(folder / TASK, json.dumps(task | {"path": str(trial.path.resolve())}))
        command = isolated.command("neuro_eqprop.simulators.nir.framework_check:main", str(folder))
        subprocess.run(command, folder, deadline=deadline, environment=ONE_THREAD)
        return np.asarray(np.load(folder / OUTPUTS, allow_pickle=False), dtype=np.float64)


def main(place: str) -> None:
    """In the child: run the task in the folder and write the outputs there."""
    folder = Path(place)
    subprocess.guard(folder)
    task = json.loads((folder / TASK).read_text())
    if task["ours"]:
        outputs = simulated(task["framework"], load(folder))
    else:
        inputs = np.load(folder / INPUTS, allow_pickle=False)
        outputs = imported(task["framework"], Path(task["path"]), inputs)
    write_npy(folder / OUTPUTS, outputs)


def imported(framework: str, path: Path, inputs: Array) -> Array:
    """The output of a file read by the framework's own importer, for inputs in each step."""
    nir, torch = import_module("nir"), import_module("torch")
    torch.set_num_threads(1)
    with torch.no_grad():
        return RUNNERS[framework](nir.read(path), inputs)


Module: TypeAlias = Any
"""A torch module that a framework built from a graph."""
Runner: TypeAlias = Callable[[Any, Array], Array]
"""Outputs (samples, steps, units) of a graph for inputs (samples, steps, features)."""


def step_by_step(net: Module, inputs: Array) -> Array:
    """Outputs of a module that takes one step and its state per call."""
    import torch

    x, state, sent = torch.tensor(inputs, dtype=torch.float32), None, []
    for step in range(inputs.shape[1]):
        out, state = net(x[:, step], state)[:2]
        sent.append(first(out).numpy().copy())
    return np.asarray(np.stack(sent, axis=1), dtype=np.float64)


def all_at_once(net: Module, inputs: Array) -> Array:
    """Outputs of a module that takes all steps in one call (samples, steps, units)."""
    import torch

    return np.asarray(first(net(torch.tensor(inputs, dtype=torch.float32))).numpy(), np.float64)


def first(out: Any) -> Any:  # noqa: ANN401
    """The spikes in the output of a neuron, which may be a tuple of spikes and states."""
    return out[0] if isinstance(out, tuple) else out


def run_snntorch(graph: Any, inputs: Array) -> Array:  # noqa: ANN401
    """Output of snnTorch's importer."""
    return step_by_step(import_module("snntorch.import_nir").import_from_nir(graph), inputs)


def run_norse(graph: Any, inputs: Array) -> Array:  # noqa: ANN401
    """Output of Norse's importer."""
    return step_by_step(import_module("norse.torch").from_nir(graph), inputs)


def run_sinabs(graph: Any, inputs: Array) -> Array:  # noqa: ANN401
    """Output of Sinabs' importer, whose modules take samples and steps in one axis."""
    net = import_module("sinabs.nir").from_nir(graph, batch_size=len(inputs))
    sent = all_at_once(lambda x: net(x.flatten(0, 1)), inputs)
    return sent.reshape(*inputs.shape[:2], -1)


def run_rockpool(graph: Any, inputs: Array) -> Array:  # noqa: ANN401
    """Output of Rockpool's importer."""
    return all_at_once(import_module("rockpool.nn.modules").from_nir(graph), inputs)


def run_spikingjelly(graph: Any, inputs: Array) -> Array:  # noqa: ANN401
    """Output of SpikingJelly's importer."""
    exchange = import_module("spikingjelly.activation_based.nir_exchange")
    return step_by_step(exchange.import_from_nir(graph), inputs)


RUNNERS: Mapping[str, Runner] = {
    "snntorch": run_snntorch,
    "spikingjelly": run_spikingjelly,
    "norse": run_norse,
    "sinabs": run_sinabs,
    "rockpool": run_rockpool,
}
"""How to run the importers of other frameworks; all use nirtorch, in float32."""

OURS = tuple(name for name in with_features([Feature.EXACT]) if name != "reference")
