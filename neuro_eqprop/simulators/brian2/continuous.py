"""The network in continuous time in Brian2: the witness of the compiled backend `biology`.

Both read the equations of `neuro_eqprop.simulators.biology.equations`. Brian2 checks their units,
and its network can be extended (`native`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.biology.equations import WHITE, Equations
from neuro_eqprop.simulators.biology.network import ContinuousNetwork
from neuro_eqprop.simulators.biology.neuron_models import Parameter
from neuro_eqprop.simulators.biology.recorder import IntervalRecorder
from neuro_eqprop.simulators.biology.simulator import ContinuousBackend
from neuro_eqprop.simulators.brian2 import BIOLOGY
from neuro_eqprop.simulators.brian2.groups import connect
from neuro_eqprop.simulators.brian2.setup import Handle, run_network, settings, simulator
from neuro_eqprop.spiking.ir import Gain, Population, Projection

OWN_NOISE = "sqrt(2 * rmax) * xi"
"""White noise of Brian2's own generator."""
POISSON = """
dreceived/dt = rmax * drive : 1
drive = outside : 1
v = 0.0 : 1
outside : 1 (constant)
pull : 1 (constant)
beta : 1 (shared)
sent : 1
chance : 1
"""
"""Neurons that fire as Poisson processes; `chance` is a uniform random number in every dt."""


@dataclass(frozen=True, slots=True)
class Brian2Biology(ContinuousBackend):
    """Brian2 backend in continuous time."""

    name: str = BIOLOGY.name

    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Run the samples in one Brian2 run."""
        run_groups(network, recorder)


@dataclass(slots=True)
class Groups:
    """The neuron groups of a run, by population."""

    groups: Mapping[str, Handle]
    samples: int

    def read(self, name: str, variable: str) -> Array:
        """A variable of a population (samples, neurons)."""
        group = self.groups[name]
        values = group.v[:] if variable == "v" else group.variables[variable].get_value()
        return np.array(values, dtype=np.float64).reshape(self.samples, -1)

    def clear(self, name: str) -> None:
        """Set the counters of spikes and of received drive of a population to zero."""
        for variable in ("sent", "received"):
            self.groups[name].variables[variable].set_value(0)

    def set_beta(self, beta: float) -> None:
        """Set the strength of the nudge."""
        for group in self.groups.values():
            group.variables["beta"].set_value(beta)


@dataclass(slots=True)
class TickCallback:
    """Called before every step of integration."""

    recorder: IntervalRecorder
    groups: Mapping[str, Handle]
    seen: dict[str, Array]
    """Spikes counted since the last step of the schedule, at the last step of integration."""
    ticks: int = 0

    def tick(self) -> None:
        """Report the last step of integration, and prepare the next one."""
        self.report()
        if not self.ticks % self.recorder.interval_ticks:
            self.recorder.interval()
        within = self.ticks % self.recorder.biology.ticks
        for name, values in self.recorder.drawn.items():
            variable = "chance" if name in self.recorder.poisson else "eta"
            self.groups[name].variables[variable].set_value(values[within])
        self.ticks += 1

    def report(self) -> None:
        """Tell the recorder which neurons spiked in the last step of integration."""
        if not self.ticks:
            return
        starts = self.ticks % self.recorder.biology.ticks == 1
        fired = {}
        for name in self.groups:
            sent = self.recorder.neurons.read(name, "sent")
            before = 0.0 if starts or name not in self.seen else self.seen[name]
            fired[name], self.seen[name] = (sent - before)[None] > 0, sent
        self.recorder.advanced(fired)


def run_groups(network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
    """Run the samples of a network in one Brian2 run."""
    brian2, biology = simulator(), network.biology
    with settings(brian2):
        clock = brian2.Clock(dt=biology.dt * brian2.second)
        groups = {
            p.name: neurons(brian2, network, population=p, clock=clock)
            for p in network.network.populations
        }
        paths = [
            synapses(brian2, network, p, groups=groups, clock=clock)
            for p in network.network.projections
            if p.synapses.values.any()
        ]
        recorder.neurons = Groups(groups, network.stimulus.samples)
        callback = TickCallback(recorder, groups, {})
        each = brian2.NetworkOperation(callback.tick, clock=clock, when="start")
        whole = brian2.Network(*groups.values(), *paths, each)
        run_network(brian2, whole, recorder.total * recorder.interval_ticks * clock.dt)
        callback.report()
        recorder.interval()


def neurons(
    brian2: ModuleType,
    network: ContinuousNetwork,
    *,
    population: Population,
    clock: Handle,
    white: str = WHITE,
    **name: str,
) -> Handle:
    """A population in its initial state, with a copy of its neurons and a stimulus per sample."""
    biology = network.biology
    outside, pull, own = network.inputs(population)
    size = outside.size
    if network.is_poisson(population):
        group = brian2.NeuronGroup(
            size,
            POISSON,
            threshold="chance < clip(outside, 0, 1) * rmax * dt",
            reset="sent = sent + 1",
            method="euler",
            namespace={"rmax": biology.rmax * brian2.Hz},
            clock=clock,
            **name,
        )
        group.outside, group.chance = outside.ravel(), 1.0
        return group
    described = network.equations(population, white=white)
    group = brian2.NeuronGroup(
        size,
        model_text(described),
        threshold=described.threshold,
        reset="\n".join(described.reset),
        refractory=biology.period * brian2.second if biology.period else False,
        method="euler",
        namespace=namespace(brian2, described),
        clock=clock,
        **name,
    )
    if described.limits:
        group.run_regularly(described.limits, when="after_resets", clock=clock)
    for variable, expression in described.initial:
        setattr(group, variable, expression)
    group.outside, group.pull = outside.ravel(), pull.ravel()
    group.own = own.ravel()
    return group


def model_text(described: Equations) -> str:
    """The equations as Brian2 writes them."""
    lines = [
        f"d{d.variable}/dt = {d.expression} : {dimension(d.unit)}"
        + (" (unless refractory)" if d.held else "")
        for d in described.derivatives
    ]
    lines += [f"{name} = {text} : {dimension(unit)}" for name, text, unit in described.definitions]
    lines += ["outside : 1 (constant)", "pull : 1 (constant)", "own : 1 (constant)"]
    lines += ["beta : 1 (shared)", "sent : 1"]
    drawn = described.noisy and not any("xi" in d.expression for d in described.derivatives)
    return "\n".join([*lines, *(["eta : 1"] if drawn else [])])


def namespace(brian2: ModuleType, described: Equations) -> dict[str, Handle]:
    """The constants with their units, and the functions of the gain curve."""
    named = {
        name: quantity(brian2, p)
        for name, p in described.constants.items()
        if name not in ("mV", "ms")  # units of Brian2
    }
    curve = described.curve
    if curve is None:
        return named

    def function(values: Array) -> Handle:
        def read(drive: Array) -> Array:
            return np.asarray(np.interp(drive, curve.drives, values))

        return brian2.Function(read, arg_units=[1], return_unit=1)

    return named | {"gain": function(curve.inputs), "mean_voltage": function(curve.voltages)}


def quantity(brian2: ModuleType, parameter: Parameter) -> Handle:
    """A parameter as a quantity of Brian2."""
    names = {"A": brian2.amp, "F": brian2.farad, "S": brian2.siemens, "V": brian2.volt}
    names |= {"s": brian2.second, "Hz": brian2.Hz, "1": 1.0}
    first, *rest = (names[part] for part in parameter.unit.split("/"))
    for each in rest:
        first = first / each
    return parameter.value * first


def dimension(unit: str) -> str:
    """A unit as Brian2's equations name it."""
    names = {"A": "amp", "V": "volt", "s": "second"}
    return "/".join(names.get(part, part) for part in unit.split("/"))


def synapses(
    brian2: ModuleType,
    network: ContinuousNetwork,
    projection: Projection,
    *,
    groups: dict[str, Handle],
    clock: Handle,
    **name: str,
) -> Handle:
    """The synapses of a projection, once for each sample and never between samples."""
    biology = network.biology
    current = "g" if projection.gain is Gain.ONE else "g_beta"
    arriving = f"{current}_post += w / (rmax * tau_s)"
    if biology.model is not None and biology.model.conductances:
        arriving = (
            f"{current}_e_post += w * int(w > 0) / (rmax * tau_s)\n"
            f"{current}_i_post += -w * int(w < 0) / (rmax * tau_s)"
        )
    paths = brian2.Synapses(
        groups[projection.source],
        groups[projection.target],
        "w : 1 (constant)",
        on_pre=arriving,
        delay=network.ticks(projection) * clock.dt,
        namespace={"rmax": biology.rmax * brian2.Hz, "tau_s": biology.tau_s * brian2.second},
        clock=clock,
        **name,
    )
    connect(paths, projection.synapses, network.stimulus.samples)
    return paths
