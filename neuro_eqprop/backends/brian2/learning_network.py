"""The Brian2 objects of a run that learns, with the equations of `learning_equations`.

A plastic projection and its mirror are one `Synapses` object with one weight, which passes
spikes in both directions.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from neuro_eqprop.backends.brian2.equations import Handle, constants
from neuro_eqprop.backends.brian2.learning_equations import (
    COMMITTED,
    EVENTS,
    SYNAPSE,
    clock_tables,
    population_equations,
    tag_equations,
    trace_constants,
)
from neuro_eqprop.backends.brian2.setup import run_network
from neuro_eqprop.backends.learning import ProgressCallback
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Projection, Spiking
from neuro_eqprop.spiking.plasticity import Plastic, PlasticNetwork, TrainingSamples


class LearningNetwork:
    """The Brian2 objects of one learning run."""

    def __init__(
        self, brian2: ModuleType, plastic: PlasticNetwork, training: TrainingSamples
    ) -> None:
        self.brian2, self.plastic, self.training = brian2, plastic, training
        self.network, self.rule = plastic.network, plastic.rule
        self.dt = self.network.dt * brian2.second
        self.clock = brian2.Clock(dt=self.dt)
        self.sample_clock = brian2.Clock(dt=self.rule.steps * self.dt)
        self.tables = clock_tables(brian2, self.rule, training.stimulus.samples, self.dt)
        self.places = {(p.name, p.gain): k for k, p in enumerate(self.network.projections)}
        self.groups = {p.name: self.neurons(p) for p in self.network.populations}
        self.pairs = {part.name: self.pair(part) for part in plastic.plastic}
        self.brian2_network = brian2.Network(*self.groups.values(), *self.pairs.values())
        for projection in self.network.projections:
            learns = projection.gain is Gain.ONE and projection.name in plastic.learns
            if not learns and projection.weight.any():
                self.brian2_network.add(self.fixed(projection))
        self.answers = brian2.EventMonitor(
            self.groups[self.network.output], "answer", variables=["sum_drive"]
        )
        self.brian2_network.add(self.answers)

    def neurons(self, population: Population) -> Handle:
        """A population in its resting state; it reads its input at the start of each sample."""
        brian2, rule = self.brian2, self.rule
        model, tick, pause = population_equations(population.neuron, rule)
        names = ["tick"]
        if any(
            self.plastic.projection(p.name).source == population.name for p in self.plastic.plastic
        ):
            names.append("window")
        if population.name == self.network.output:
            names.append("answer")
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
        """Current and pull of a population, sample by sample."""
        stimulus = self.training.stimulus
        nothing = np.zeros((stimulus.samples, population.size))
        current = population.bias + stimulus.current.get(population.name, nothing)
        pull = stimulus.pull.get(population.name, nothing)
        return {
            "brought": self.brian2.TimedArray(current, dt=self.sample_clock.dt),
            "pulled": self.brian2.TimedArray(pull, dt=self.sample_clock.dt),
        }

    def pair(self, part: Plastic) -> Handle:
        """The synapses of a plastic projection, which also carry its mirror."""
        there = self.plastic.projection(part.name)
        source, target = self.network[there.source], self.network[there.target]
        counts, gather = tag_equations(self.rule)
        on_pre = {
            "there": f"a_one_post += passed{payload(source, 'pre')}",
            "gather": gather,
        }
        on_post = {"back": f"a_one_pre += passed_back{payload(target, 'post')}"}
        events = {"there": "spike", "gather": "window", "back": "spike"}
        if part.mirror is None:
            on_post = {}
            del events["back"]
        paths = self.brian2.Synapses(
            self.groups[there.source],
            self.groups[there.target],
            SYNAPSE + counts,
            on_pre=on_pre,
            on_post=on_post,
            on_event=events,
            delay={name: 0 * self.dt for name in events},
            namespace={**self.tables, **self.constants(part)},
            clock=self.clock,
        )
        rows, columns = np.nonzero(np.ones_like(there.weight))
        paths.connect(i=columns, j=rows)
        self.set_weights(paths, part, there)
        paths.run_regularly(COMMITTED, when="end", clock=self.sample_clock)
        # Adding inputs in the order of the projections fixes the floating-point rounding.
        paths.there.order = self.places[part.name, Gain.ONE]
        paths.gather.order = len(self.places)
        if part.mirror is not None:
            paths.back.order = self.places[part.mirror, Gain.ONE]
        return paths

    def constants(self, part: Plastic) -> dict[str, Handle]:
        """The namespace of the commit statements."""
        rule, rates = self.rule, self.training.rates
        etas = np.zeros(len(rates) + 1)
        for k, rate in enumerate(rates):
            if k % rule.batch == rule.batch - 1 or k == len(rates) - 1:
                etas[k + 1] = self.plastic.eta(part, float(rate), k % rule.batch + 1)
        return {
            "eta": self.brian2.TimedArray(etas, dt=self.sample_clock.dt),
            "limit": part.limit,
            "mirrored": part.mirrored,
        }

    def set_weights(self, paths: Handle, part: Plastic, there: Projection) -> None:
        """Set the initial weights, and the effective weights that synapses pass on."""
        gains = self.plastic.gains
        one = np.ones_like(there.weight)
        paths.w = there.weight.ravel()
        paths.gain = gains.get(part.name, one).ravel()
        paths.gain_back = gains.get(part.mirror or "", one.T).T.ravel()
        paths.passed = paths.w[:] * paths.gain[:]
        paths.passed_back = (part.mirrored * paths.w[:]) * paths.gain_back[:]

    def fixed(self, projection: Projection) -> Handle:
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
        """Monitors of a synapse's pre and post trace, tag and weight; a mirror's are its pair's."""
        part = next(p for p in self.plastic.plastic if name in (p.name, p.mirror))
        row, column = (target, source) if name == part.name else (source, target)
        there, paths = self.plastic.projection(part.name), self.pairs[part.name]
        place = row * there.weight.shape[1] + column
        chosen = (
            (self.groups[there.source], "r", column),
            (self.groups[there.target], "r", row),
            (paths, "m", place),
            (paths, "w", place),
        )
        found = [
            self.brian2.StateMonitor(of, what, record=[k], when="end", order=1, clock=self.clock)
            for of, what, k in chosen
        ]
        self.brian2_network.add(*found)
        return found

    def monitor_activity(self, name: str, variable: str) -> Handle:
        """Monitor of a variable of all units of a population: spikes, drive, voltage or state."""
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

    def run(self, progress: ProgressCallback) -> None:
        """Run all samples; `progress` is called after each."""

        def ended(t: Handle) -> None:
            if t > self.dt / 2:
                progress(1)

        self.brian2_network.add(
            self.brian2.NetworkOperation(ended, clock=self.sample_clock, when="end")
        )
        length = self.training.stimulus.samples * self.rule.steps + 1
        run_network(self.brian2, self.brian2_network, length * self.dt)


def message_variable(population: Population) -> str:
    """The name of the variable with the message of a population."""
    return "q" if isinstance(population.neuron, Graded) else "fired"


def payload(population: Population, end: str) -> str:
    """The factor of a weight when a message of a population at that end arrives."""
    return f" * q_{end}" if isinstance(population.neuron, Graded) else ""
