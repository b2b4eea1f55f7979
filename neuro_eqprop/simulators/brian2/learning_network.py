"""The Brian2 objects of a learning run, with the equations of `learning_equations`.

A plastic projection and its mirror are one `Synapses` object, whose weights pass messages in both
directions.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from neuro_eqprop.simulators.brian2.equations import constants
from neuro_eqprop.simulators.brian2.groups import message_variable
from neuro_eqprop.simulators.brian2.learning_equations import (
    CHANGE_WEIGHT,
    EVENTS,
    SYNAPSE,
    clock_tables,
    population_equations,
    tag_equations,
    trace_constants,
)
from neuro_eqprop.simulators.brian2.setup import Handle, run_network
from neuro_eqprop.simulators.learning import LearningLog
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Projection, Spiking
from neuro_eqprop.spiking.plasticity import Plastic


class Brian2LearningNetwork:
    """The Brian2 objects of one learning run."""

    def __init__(self, brian2: ModuleType, log: LearningLog) -> None:
        self.brian2, self.log = brian2, log
        self.plastic, self.training = plastic, training = log.plastic, log.training
        self.network, self.rule = plastic.network, plastic.rule
        self.dt = self.network.dt * brian2.second
        self.clock = brian2.Clock(dt=self.dt)
        self.sample_clock = brian2.Clock(dt=self.rule.steps * self.dt)
        self.tables = clock_tables(brian2, self.rule, training.stimulus.samples, self.dt)
        self.places = {(p.name, p.gain): k for k, p in enumerate(self.network.projections)}
        self.groups = {p.name: self.neurons(p) for p in self.network.populations}
        self.pairs = {part.name: self.plastic_synapses(part) for part in plastic.plastic}
        self.brian2_network = brian2.Network(*self.groups.values(), *self.pairs.values())
        for projection in self.network.projections:
            learns = projection.gain is Gain.ONE and projection.name in plastic.learns
            if not learns and projection.weight.any():
                self.brian2_network.add(self.fixed_synapses(projection))
        self.readouts = brian2.EventMonitor(
            self.groups[self.network.output], "readout", variables=["sum_drive"]
        )
        self.brian2_network.add(self.readouts)
        self.monitors = [self.monitor_synapse(*synapse) for synapse in log.record.synapses]
        self.recorded = {key: self.monitor_activity(*key) for key in log.activity}

    def neurons(self, population: Population) -> Handle:
        """The group of a population; it loads its input at the start of each sample."""
        brian2, rule = self.brian2, self.rule
        model, tick, pause = population_equations(population.neuron, rule)
        names = ["tick"]
        if any(
            self.plastic.projection(p.name).source == population.name for p in self.plastic.plastic
        ):
            names.append("window")
        if population.name == self.network.output:
            names.append("readout")
        group = brian2.NeuronGroup(
            population.size,
            model,
            threshold=f"{message_variable(population)} != 0",
            reset="",
            events={name: EVENTS[name] for name in names},
            namespace={
                **self.tables,
                **constants(brian2, population.neuron),
                **trace_constants(rule, self.dt),
                **self.input_tables(population),
            },
            method="exact",
            clock=self.clock,
        )
        group.set_event_schedule("tick", when="start")
        group.run_on_event("tick", tick, when="groups", order=1)
        group.run_regularly(pause, when="groups", order=1, clock=self.sample_clock)
        if isinstance(population.neuron, Spiking):
            group.v = population.neuron.threshold / 2
        return group

    def input_tables(self, population: Population) -> dict[str, Handle]:
        """Timed arrays of the current and pull of a population, one value per sample."""
        stimulus = self.training.stimulus
        nothing = np.zeros((stimulus.samples, population.size))
        current = population.bias + stimulus.current.get(population.name, nothing)
        pull = stimulus.pull.get(population.name, nothing)
        return {
            "input_current": self.brian2.TimedArray(current, dt=self.sample_clock.dt),
            "input_pull": self.brian2.TimedArray(pull, dt=self.sample_clock.dt),
        }

    def plastic_synapses(self, part: Plastic) -> Handle:
        """The synapses of a plastic projection and its mirror."""
        projection = self.plastic.projection(part.name)
        source, target = self.network[projection.source], self.network[projection.target]
        counts, gather = tag_equations(self.rule)
        on_pre = {
            "forward": f"a_one_post += passed{payload(source, 'pre')}",
            "gather": gather,
        }
        on_post = {"feedback": f"a_one_pre += passed_back{payload(target, 'post')}"}
        events = {"forward": "spike", "gather": "window", "feedback": "spike"}
        if part.mirror is None:
            on_post = {}
            del events["feedback"]
        paths = self.brian2.Synapses(
            self.groups[projection.source],
            self.groups[projection.target],
            SYNAPSE + counts,
            on_pre=on_pre,
            on_post=on_post,
            on_event=events,
            delay={name: 0 * self.dt for name in events},
            namespace={**self.tables, **self.constants(part)},
            clock=self.clock,
        )
        rows, columns = np.nonzero(np.ones_like(projection.weight))
        paths.connect(i=columns, j=rows)
        self.set_weights(paths, part, projection)
        paths.run_regularly(CHANGE_WEIGHT, when="end", clock=self.sample_clock)
        # Adding inputs in the order of the projections fixes the floating-point rounding.
        paths.forward.order = self.places[part.name, Gain.ONE]
        paths.gather.order = len(self.places)
        if part.mirror is not None:
            paths.feedback.order = self.places[part.mirror, Gain.ONE]
        return paths

    def constants(self, part: Plastic) -> dict[str, Handle]:
        """The namespace of the commit statements."""
        samples, row = self.training.stimulus.samples, self.plastic.plastic.index(part)
        etas = self.plastic.etas(self.training.rates)[:, row] * self.rule.commits(samples)
        return {
            "eta": self.brian2.TimedArray(np.append(0.0, etas), dt=self.sample_clock.dt),
            "limit": part.limit,
            "mirrored": part.mirrored,
        }

    def set_weights(self, paths: Handle, part: Plastic, projection: Projection) -> None:
        """Set the initial weights, and the effective weights that synapses pass on."""
        gains = self.plastic.gains
        one = np.ones_like(projection.weight)
        paths.w = projection.weight.ravel()
        paths.gain = gains.get(part.name, one).ravel()
        paths.gain_back = gains.get(part.mirror or "", one.T).T.ravel()
        paths.passed = paths.w[:] * paths.gain[:]
        paths.passed_back = (part.mirrored * paths.w[:]) * paths.gain_back[:]

    def fixed_synapses(self, projection: Projection) -> Handle:
        """The synapses of a projection that is not plastic."""
        arriving = "a_one" if projection.gain is Gain.ONE else "a_beta"
        sent = payload(self.network[projection.source], "pre")
        paths = self.brian2.Synapses(
            self.groups[projection.source],
            self.groups[projection.target],
            "w : 1 (constant)",
            on_pre=f"{arriving}_post += w{sent}",
            delay=0 * self.dt,
            clock=self.clock,
        )
        rows, columns = np.nonzero(projection.weight)
        paths.connect(i=columns, j=rows)
        gain = self.plastic.gains.get(projection.name, np.ones_like(projection.weight))
        passed = projection.weight * gain if projection.gain is Gain.ONE else projection.weight
        paths.w = passed[rows, columns]
        paths.pre.order = self.places[projection.name, projection.gain]
        return paths

    def monitor_synapse(self, name: str, target: int, source: int) -> list[Handle]:
        """Add monitors of a synapse: its traces, tag and weight, or those of the one it mirrors."""
        part = self.plastic.part_of(name)
        row, column = (target, source) if name == part.name else (source, target)
        projection, paths = self.plastic.projection(part.name), self.pairs[part.name]
        place = row * projection.weight.shape[1] + column
        chosen = (
            (self.groups[projection.source], "r", column),
            (self.groups[projection.target], "r", row),
            (paths, "m", place),
            (paths, "w", place),
        )
        monitors = [
            self.brian2.StateMonitor(of, what, record=[k], when="end", order=1, clock=self.clock)
            for of, what, k in chosen
        ]
        self.brian2_network.add(*monitors)
        return monitors

    def monitor_activity(self, name: str, variable: str) -> Handle:
        """Add a monitor of a population: of its spikes, drive, voltage or state."""
        own = {"spikes": message_variable(self.network[name]), "voltage": "v", "state": "x"}
        monitor = self.brian2.StateMonitor(
            self.groups[name],
            own.get(variable, variable),
            record=True,
            when="end",
            order=1,
            clock=self.clock,
        )
        self.brian2_network.add(monitor)
        return monitor

    def run(self) -> None:
        """Run all samples, and report each."""

        def ended(t: Handle) -> None:
            if t > self.dt / 2:
                self.log.progress(1)

        self.brian2_network.add(
            self.brian2.NetworkOperation(ended, clock=self.sample_clock, when="end")
        )
        length = self.training.stimulus.samples * self.rule.steps + 1
        run_network(self.brian2, self.brian2_network, length * self.dt)


def payload(population: Population, end: str) -> str:
    """The factor of a weight when a message arrives from a population at that end."""
    return f" * q_{end}" if isinstance(population.neuron, Graded) else ""
