"""Export a spiking network as C, and compare the compiled program with the reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.write import (
    make_folder,
    refuse_foreign,
    replace_folder,
    temporary_folder,
    write_text,
)
from neuro_eqprop.networks.architectures.normalized import without_normalization
from neuro_eqprop.networks.network import Role
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.c.build import Steps, run_steps
from neuro_eqprop.simulators.c.export import CExport, operations, readme, sizes, write_program
from neuro_eqprop.simulators.c.program import (
    INPUT_ONE,
    Entry,
    HostInput,
    Program,
    integer_input,
    learning_program,
    make_program,
    reduced,
)
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.arithmetic import power_above
from neuro_eqprop.spiking.input_coding import THETA, InputCoding
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import connection_synapses, signed_populations
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    check_code,
    make_plastic,
    training_stimulus,
)
from neuro_eqprop.spiking.plasticity import IntegerArithmetic, LearningRule, PlasticNetwork
from neuro_eqprop.training.trained import TrainedNetwork

FINEST = 2.0**-30
"""Input weights are multiples of this."""
LEARNING_THETA = 2.0**-8
"""Theta of graded units that learn, as in `learn_on_chip`."""
TAU = 8.0
"""Time constant of the traces, as in `learn_on_chip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CLearning:
    """How an exported program learns; its weights have as many bits as those of the model."""

    beta: float
    """Strength of the nudge: -beta and then +beta after the free phase."""
    rate: float = 0.05
    """Learning rate."""
    phases: int | None = None
    """Steps of a nudged phase; the default is that of the code."""
    batch: int = 1
    """Samples of a commit."""
    seed: int = 0
    """Seed of the stochastic rounding."""

    def plastic(self, spiking: LoweredNetwork) -> PlasticNetwork:
        """The plastic network of a model with integer weights."""
        assert spiking.bits is not None
        code = spiking.coding.code
        check_code(code)
        assert code.learning is not None
        schedule = code.learning.lengths(self.phases).schedule(beta=self.beta, centered=True)
        numbers = IntegerArithmetic(self.seed, spiking.bits)
        rule = LearningRule(schedule, TAU, batch=self.batch, numbers=numbers)
        largest = max(float(np.abs(value).max(initial=0.0)) for value in spiking.exact.values())
        coding = replace(spiking.coding, theta=LEARNING_THETA)
        limit = power_above(max(largest, 1.0))
        config = PlasticityConfig(coding, rule, limit, spiking.network.dt)
        return make_plastic(spiking.rate, spiking.exact, config)


def inputs_of(spiking: LoweredNetwork) -> Entry:
    """How samples enter the program of a network."""
    rate, coding, features = spiking.rate, spiking.coding, spiking.rate.input.size
    if without_normalization(rate)[1] is not None:
        raise BackendError(
            f"{rate.input.name!r} is normalized, which divides, and C has integers alone; "
            "normalize the data before, and train without"
        )
    if spiking.input in (InputCoding.GRADED, InputCoding.RATE):
        grid = THETA if spiking.input is InputCoding.GRADED else coding.grid
        return Entry(features, driven={rate.input.name: grid})
    if spiking.input is not InputCoding.CURRENT:
        raise BackendError(
            f"C has no input coding {spiking.input.name!r}; use 'current', 'graded' or 'rate'"
        )
    feeds = []
    for connection in rate.connections:
        if rate[connection.source].role is not Role.INPUT:
            continue
        synapses = connection_synapses(rate, spiking.params, connection)
        whole = synapses.values / FINEST
        if not np.array_equal(whole, np.rint(whole)):
            raise BackendError(
                f"{connection.name!r} divides by a number that is no power of two, which integers "
                "cannot; use a pooling of 2 or 4"
            )
        base = reduced(whole)[1] * FINEST
        for name, sign in signed_populations(rate[connection.target], coding):
            feeds.append(HostInput(name, synapses.scaled(sign), base))
    return Entry(features, tuple(feeds), {feed.target: coding.grid for feed in feeds})


@dataclass(frozen=True, slots=True)
class Exported:
    """A program with what is needed to compare it with the reference."""

    program: Program
    network: SpikingNetwork
    schedule: Schedule
    spiking: LoweredNetwork
    learns: bool

    def integers(self, x: Array) -> Ints:
        """Samples as integer inputs."""
        return integer_input(x, self.program.input_most)

    def stimulus(self, x: Array) -> Stimulus:
        """The stimulus of the reference, of the values that the integer inputs stand for."""
        values = self.integers(x) / INPUT_ONE
        if not self.learns:
            return self.spiking.encode(values)
        rate, coding = self.spiking.rate, self.spiking.coding
        nothing = np.zeros((len(x), rate.output.size))
        return training_stimulus(rate, values, nothing, coding)

    def equal(self, x: Array, found: Steps) -> float:
        """The fraction of samples in which every message is that of the reference."""
        names = frozenset(found.messages)
        sink = MemorySink()
        load_backend("reference").run(
            self.network, self.stimulus(x), self.schedule, record=Record(names), sink=sink
        )
        payload = {
            p.name: p.neuron.sizes.payload if p.neuron.graded else 1.0
            for p in self.network.populations
        }
        same = [
            all(
                np.array_equal(found.messages[name][k] * payload[name], recording.spikes[name])
                for name in names
            )
            for k, recording in enumerate(sink.recordings)
        ]
        return float(np.mean(same))


def program_of(
    spiking: LoweredNetwork, *, steps: int | None = None, learning: CLearning | None = None
) -> Exported:
    """The C program of a network."""
    if spiking.bits is None:
        raise BackendError("C needs integers; use to_spiking(bits=8), or --bits 8")
    schedule = spiking.schedule(steps)
    layers = "-".join(str(layer.size) for layer in spiking.rate.layers)
    title = f"An equilibrium network {layers}, {spiking.description}"
    if learning is None:
        made = make_program(spiking.network, inputs_of(spiking), schedule, title=title)
        return Exported(made, spiking.network, schedule, spiking, learns=False)
    plastic = learning.plastic(spiking)
    made = learning_program(
        plastic, title=title, rate=learning.rate, grid=spiking.coding.grid, inference=schedule[0]
    )
    return Exported(made, plastic.network, schedule, spiking, learns=True)


def export_c(
    model: TrainedNetwork,
    spiking: LoweredNetwork,
    folder: str | Path,
    x: Array | None = None,
    *,
    steps: int | None = None,
    learning: CLearning | None = None,
    force: bool = False,
) -> CExport:
    """Write a spiking network as C, see `SpikingModel.to_c`."""
    place = Path(folder)
    refuse_foreign(place, force=force)
    made = program_of(spiking, steps=steps, learning=learning)
    found = None
    with temporary_folder(within=make_folder(place.parent)) as temporary:
        draft = temporary / "net"
        write_program(draft, made.program, x)
        trial = make_folder(temporary / "trial")
        write_program(trial, made.program, x)
        constants, ram, code = sizes(trial, made.program)
        if x is not None and which("gcc") is not None:
            samples = [row.tobytes() for row in made.integers(x)]
            found = run_steps(trial, made.program, made.schedule, samples)
        sent = {} if found is None else {n: mean_sent(m) for n, m in found.messages.items()}
        export = CExport(
            place,
            spiking.code,
            spiking.bits or 0,
            learning is not None,
            made.program.steps,
            constants,
            ram,
            code,
            operations(made.program, x, sent),
        )
        if x is not None and found is not None:
            agreement = float(np.mean(found.classes == model.predict(x)))
            equal = made.equal(x, found)
            export = replace(export, agreement=agreement, equal=equal, samples=len(x))
        write_text(draft / "README.md", readme(export, made.program.title))
        replace_folder(draft, place)
    return export


def mean_sent(messages: Ints) -> float:
    """The mean number of messages of a sample."""
    return float(np.count_nonzero(messages) / len(messages))
