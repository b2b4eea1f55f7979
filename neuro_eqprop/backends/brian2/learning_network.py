"""The objects of a Brian2 run that learns, by the equations of `backends.brian2_rule`.

A projection that learns and its mirror are one `Synapses` object with one weight, on which spikes
travel both ways.
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
    gathering,
    of_the_rule,
    population,
)
from neuro_eqprop.backends.learning import Watch
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Projection, Spiking
from neuro_eqprop.spiking.plasticity import Plastic, PlasticNetwork, TrainingSamples


class LearningNetwork:
    """Samples under way: the objects of one Brian2 run."""

    def __init__(
        self, brian2: ModuleType, plastic: PlasticNetwork, lessons: TrainingSamples
    ) -> None:
        self.brian2, self.plastic, self.lessons = brian2, plastic, lessons
        self.network, self.rule = plastic.network, plastic.rule
        self.dt = self.network.dt * brian2.second
        self.clock = brian2.Clock(dt=self.dt)
        self.lesson = brian2.Clock(dt=self.rule.steps * self.dt)
        self.named = clock_tables(brian2, self.rule, lessons.stimulus.samples, self.dt)
        self.places = {(p.name, p.gain): k for k, p in enumerate(self.network.projections)}
        self.groups = {p.name: self.neurons(p) for p in self.network.populations}
        self.pairs = {part.name: self.pair(part) for part in plastic.plastic}
        self.whole = brian2.Network(*self.groups.values(), *self.pairs.values())
        for projection in self.network.projections:
            learns = projection.gain is Gain.ONE and projection.name in plastic.learns
            if not learns and projection.weight.any():
                self.whole.add(self.fixed(projection))
        self.answers = brian2.EventMonitor(
            self.groups[self.network.output], "answer", variables=["sum_drive"]
        )
        self.whole.add(self.answers)

    def neurons(self, told: Population) -> Handle:
        """A population at rest, which takes up what a sample brings when it begins."""
        brian2, rule = self.brian2, self.rule
        model, tick, pause = population(told.neuron, rule)
        names = ["tick"]
        if any(self.plastic.projection(p.name).source == told.name for p in self.plastic.plastic):
            names.append("window")
        if told.name == self.network.output:
            names.append("answer")
        group = brian2.NeuronGroup(
            told.size,
            model,
            threshold=f"{message(told)} != 0",
            reset="",
            events={name: EVENTS[name] for name in names},
            namespace={
                **self.named,
                **constants(brian2, told.neuron),
                **of_the_rule(rule, self.dt),
                **self.brought(told),
            },
            method="exact",
            clock=self.clock,
        )
        group.set_event_schedule("tick", when="start")
        group.run_on_event("tick", tick, when="groups", order=1)
        group.run_regularly(pause, when="groups", order=1, clock=self.lesson)
        if isinstance(told.neuron, Spiking):
            group.v = told.neuron.threshold / 2
        return group

    def brought(self, told: Population) -> dict[str, Handle]:
        """What every sample brings to a population."""
        stimulus = self.lessons.stimulus
        nothing = np.zeros((stimulus.samples, told.size))
        current = told.bias + stimulus.current.get(told.name, nothing)
        pull = stimulus.pull.get(told.name, nothing)
        return {
            "brought": self.brian2.TimedArray(current, dt=self.lesson.dt),
            "pulled": self.brian2.TimedArray(pull, dt=self.lesson.dt),
        }

    def pair(self, part: Plastic) -> Handle:
        """The synapses of a projection that learns, which its mirror goes back on."""
        there = self.plastic.projection(part.name)
        source, target = self.network[there.source], self.network[there.target]
        counts, gather = gathering(self.rule)
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
            namespace={**self.named, **self.constants(part)},
            clock=self.clock,
        )
        rows, columns = np.nonzero(np.ones_like(there.weight))
        paths.connect(i=columns, j=rows)
        self.set_weights(paths, part, there)
        paths.run_regularly(COMMITTED, when="end", clock=self.lesson)
        # What arrives is added in the order of the projections, which fixes the last digits.
        paths.there.order = self.places[part.name, Gain.ONE]
        paths.gather.order = len(self.places)
        if part.mirror is not None:
            paths.back.order = self.places[part.mirror, Gain.ONE]
        return paths

    def constants(self, part: Plastic) -> dict[str, Handle]:
        """What the statements of a commit call by name."""
        rule, rates = self.rule, self.lessons.rates
        etas = np.zeros(len(rates) + 1)
        for k, rate in enumerate(rates):
            if k % rule.batch == rule.batch - 1 or k == len(rates) - 1:
                etas[k + 1] = self.plastic.eta(part, float(rate), k % rule.batch + 1)
        return {
            "eta": self.brian2.TimedArray(etas, dt=self.lesson.dt),
            "limit": part.limit,
            "mirrored": part.mirrored,
        }

    def set_weights(self, paths: Handle, part: Plastic, there: Projection) -> None:
        """Weights as they are before the first sample, and what is passed on of them."""
        gains = self.plastic.gains
        one = np.ones_like(there.weight)
        paths.w = there.weight.ravel()
        paths.gain = gains.get(part.name, one).ravel()
        paths.gain_back = gains.get(part.mirror or "", one.T).T.ravel()
        paths.passed = paths.w[:] * paths.gain[:]
        paths.passed_back = (part.mirrored * paths.w[:]) * paths.gain_back[:]

    def fixed(self, projection: Projection) -> Handle:
        """The synapses of a projection that does not learn."""
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

    def story(self, name: str, target: int, source: int) -> list[Handle]:
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
        self.whole.add(*found)
        return found

    def run(self, watch: Watch) -> None:
        """All samples; `watch` hears of each."""

        def ended(t: Handle) -> None:
            if t > self.dt / 2:
                watch(1)

        self.whole.add(self.brian2.NetworkOperation(ended, clock=self.lesson, when="end"))
        length = self.lessons.stimulus.samples * self.rule.steps + 1
        self.whole.run(length * self.dt, namespace={})


def message(told: Population) -> str:
    """The variable that holds what a population sends."""
    return "q" if isinstance(told.neuron, Graded) else "fired"


def payload(told: Population, end: str) -> str:
    """What a weight is multiplied by when a spike of a population at that end arrives."""
    return f" * q_{end}" if isinstance(told.neuron, Graded) else ""
