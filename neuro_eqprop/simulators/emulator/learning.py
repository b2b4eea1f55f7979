"""The rule of `neuro_eqprop.spiking.plasticity` in compiled code, for whole training sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files import deadlines
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.emulator import learning_kernels as kernels
from neuro_eqprop.simulators.emulator import packed
from neuro_eqprop.simulators.learning import Learned, Learner, LearningLog
from neuro_eqprop.simulators.learning_rules import effective_weights, engine_draws
from neuro_eqprop.spiking.arithmetic import ONE, Numbers, to_12_bits
from neuro_eqprop.spiking.counter_rng import mix
from neuro_eqprop.spiking.ir import Gain, Graded, Population
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.plasticity import (
    LoihiEngine,
    third_factors,
)

AT_ONCE = 2**25
"""Synapse-steps per call of compiled code: a fraction of a second, so that Ctrl-C works."""


@dataclass(frozen=True, slots=True)
class EmulatorLearner(Learner):
    """Learns sample by sample in compiled code, in float64 or in integers.

    The first run on a machine compiles for some seconds; the code is then cached on disk.
    """

    name: str = "emulator"

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        learning, rule = CompiledLearning(log), log.plastic.rule
        work = rule.steps * (sum(p.size for p in log.plastic.network.populations) + 1)
        for part in log.parts(max(1, AT_ONCE // (work * 100 * rule.batch)) * rule.batch):
            learning.learn(part.start, part.stop)
        return learning.result()


class CompiledLearning:
    """A learning run in the flat arrays of `learning_kernels`."""

    def __init__(self, log: LearningLog) -> None:
        self.log, self.plastic, self.training = log, log.plastic, log.training
        self.network = self.plastic.network
        ends = np.cumsum([0, *(p.size for p in self.network.populations)]).tolist()
        names = [p.name for p in self.network.populations]
        self.units = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
        self.neurons = {p.name: neurons_of(self.network, p) for p in self.network.populations}
        rates = self.training.rates
        self.factors = np.stack([self.plastic.etas(rates), self.plastic.keeps(rates)], axis=2)
        self.net, self.memory = self.pack_network(ends[-1])
        self.rule, self.results = self.pack_rule(), self.pack_results(ends[-1])

    def pack_network(self, units: int) -> tuple[kernels.PlasticTables, kernels.Memory]:
        """The tables of the network, and its memory before the first sample."""
        network, names = self.network, [p.name for p in self.network.populations]
        projections, weights, gains = [], list[Array](), list[Array]()
        self.rows: dict[str, int] = {}
        self.spans: dict[str, slice] = {}
        """By plastic projection, its row and its weights."""
        offset = 0
        for row, each in enumerate(effective_weights(self.plastic, self.training.first)):
            projection, size = each.projection, each.weight.size
            ends = (names.index(projection.source), names.index(projection.target))
            projections.append([*ends, int(projection.gain is Gain.BETA), offset])
            weights.append(each.weight.T.ravel())
            gains.append(np.broadcast_to(each.gain, each.weight.shape).T.ravel())
            if each.learns:
                self.rows[projection.name] = row
                self.spans[projection.name] = slice(offset, offset + size)
            offset += size
        parts, limits, tags = [], [], 0
        for part in self.plastic.plastic:
            mirror = -1 if part.mirror is None else self.rows[part.mirror]
            parts.append([self.rows[part.name], mirror, tags])
            limits.append([*self.plastic.limits(part), part.mirrored])
            tags += self.plastic.projection(part.name).weight.size
        rows = [
            [self.units[p.name].start, self.units[p.name].stop, *self.kind(p)]
            for p in network.populations
        ]
        constants = [packed.constants(self.neurons[p.name]) for p in network.populations]
        for population in network.populations:
            if packed.is_other(population.neuron.activation):
                raise BackendError(
                    f"population {population.name!r} has an activation of another package, and "
                    "the emulator learns with clipped ones and tanh; use reference"
                )
        net = kernels.PlasticTables(
            populations=np.array(rows, dtype=np.int64),
            constants=np.array(constants),
            projections=np.array(projections, dtype=np.int64).reshape(-1, 4),
            gains=np.concatenate(gains),
            parts=np.array(parts, dtype=np.int64).reshape(-1, 3),
            limits=np.array(limits).reshape(-1, 3),
            output=names.index(network.output),
        )
        memory = kernels.Memory(
            units=kernels.UnitState(*np.zeros((9, units))),
            sends=np.zeros(units, dtype=np.uint8),
            senders=np.zeros(units, dtype=np.int64),
            sender_counts=np.zeros(len(names), dtype=np.int64),
            traces=np.zeros(units),
            gated=np.zeros((kernels.BLOCK, units)),
            past=np.zeros((kernels.BLOCK, units)),
            scaled=np.zeros(units),
            chance=np.zeros(3),
            weights=np.concatenate(weights),
            effective=np.concatenate(weights) * net.gains,
            tags=np.zeros(tags),
            touched=np.zeros((len(parts), units), dtype=np.uint8),
        )
        return net, memory

    def kind(self, population: Population) -> tuple[int, int, int]:
        """The columns GRADED, SENDS_ONCE and HAS_INPUT of a population."""
        neuron, name = population.neuron, population.name
        has_input = any(projection.target == name for projection in self.network.projections)
        if not isinstance(neuron, Graded):
            return 0, 0, int(has_input)
        pulled = name in self.training.stimulus.pull
        # With other thetas the residual can be theta / 2, which rounds up and down alternately.
        exact = frexp(neuron.theta)[0] == 0.5
        sends_once = exact and neuron.damping == 1.0 and not has_input and not pulled
        return 1, int(sends_once), int(has_input)

    def pack_rule(self) -> kernels.RuleTables:
        """The learning rule."""
        rule, numbers = self.plastic.rule, self.plastic.rule.numbers
        mode, impulse, tag_factor, seed = kernels.FLOAT, 1.0 - rule.keep, 0.0, 0
        if numbers is not None:
            mode, impulse, seed = kernels.INTEGER, float(rule.impulse), numbers.seed
        if isinstance(numbers, LoihiEngine):
            mode, tag_factor = kernels.ENGINE, 2.0 ** (7 + numbers.exponent)
        episode = rule.episode
        betas = [step.beta for step in episode]
        if numbers is not None:
            betas = [to_12_bits(beta) / ONE for beta in betas]
        return kernels.RuleTables(
            mode=mode,
            batch=rule.batch,
            fresh=int(rule.fresh),
            phases=np.array([step.phase for step in episode], dtype=np.int64),
            betas=np.array(betas),
            gates=np.array([step.gate for step in episode]),
            reads=np.array(
                [step.phase == 0 and step.in_window for step in episode], dtype=np.int64
            ),
            free=rule.schedule[0].steps,
            keep=rule.keep,
            impulse=impulse,
            largest=rule.top,
            tag_factor=tag_factor,
            margin=rule.margin * rule.top,
            start=mix(np.array([seed], dtype=np.uint64))[0],
        )

    def pack_results(self, units: int) -> kernels.Results:
        """The results of the run, some of them arrays of the log, and what is recorded."""
        log, recorded = self.log, len(self.log.nudged) if self.log.activity else 0
        chosen, weight_steps = [], []
        for name, target, source in log.record.synapses:
            part = self.plastic.part_of(name)
            projection = self.plastic.projection(name)
            targets, sources = projection.weight.shape
            place = source * targets + target
            tag = place if name == part.name else target * sources + source
            tag += int(self.net.parts[self.plastic.plastic.index(part), kernels.TAGS])
            pre = self.units[projection.source].start + source
            post = self.units[projection.target].start + target
            chosen.append([pre, post, tag, self.spans[name].start + place])
            weight_steps.append(self.plastic.weight_step(part))
        return kernels.Results(
            drives=log.drives,
            nudged=log.nudged,
            committed=np.zeros_like(self.memory.tags),
            sent=np.zeros((log.counted.shape[1], units), dtype=np.int64),
            counted=log.counted,
            totals=np.zeros(2, dtype=np.int64),
            chosen=np.array(chosen, dtype=np.int64).reshape(-1, 4),
            weight_steps=np.array(weight_steps),
            history=log.history,
            activity=np.zeros((recorded, self.plastic.rule.steps - 1, 3, units)),
        )

    def to_units(self, name: str, values: Array | None) -> Numbers | float:
        """External input in the number format of a population; zero for None."""
        return 0.0 if values is None else self.neurons[name].arithmetic.rounded(values)

    def learn(self, start: int, stop: int) -> None:
        """Learn from the samples from `start` up to `stop`."""
        stimulus, rule = self.training.stimulus.take(start, stop), self.plastic.rule
        given, pull = np.zeros((2, stop - start, len(self.memory.traces)))
        for population in self.network.populations:
            name, here = population.name, self.units[population.name]
            bias = self.neurons[name].bias
            given[:, here] = bias + self.to_units(name, stimulus.current.get(name))
            pull[:, here] = self.to_units(name, stimulus.pull.get(name))
        first, draws = self.training.first + start, np.zeros((3, 1))
        targets, factors = np.zeros_like(self.log.drives[start:stop]), np.zeros(stop - start)
        if self.network.output in stimulus.pull:
            targets = rule.top * stimulus.pull[self.network.output]
        if isinstance(rule.numbers, LoihiEngine):
            steps = slice(first * rule.steps, (first + stop - start) * rule.steps)
            draws = np.ascontiguousarray(engine_draws(rule.numbers, steps.stop)[:, steps])
            factors = third_factors(rule.numbers, self.training.rates[start:stop]).astype(float)
        samples = kernels.SampleTables(
            begin=start,
            first=first,
            is_last=int(stop == self.training.stimulus.samples),
            given=given,
            pull=pull,
            targets=targets,
            commits=self.factors[start:stop],
            third_factors=factors,
            draws=draws,
        )
        halt = deadlines.current().flag
        kernels.learn_all(self.net, self.rule, samples, self.memory, self.results, halt)
        deadlines.check()

    def result(self) -> Learned:
        """The result of the run."""
        log, (clipped, overflows) = self.log, self.results.totals.tolist()
        log.clipped, log.overflows = clipped, overflows
        for name, sent in log.sent.items():
            sent[:] = self.results.sent[:, self.units[name]]
        shown = self.neurons[self.network.output].shown
        log.drives[:] = log.drives * shown / self.plastic.rule.schedule[0].window
        for name, variable in log.activity:
            log.activity[name, variable][:] = self.recorded(name, variable)
        weights = {
            name: self.matrix(name, self.memory.weights[s]) for name, s in self.spans.items()
        }
        tags = {}
        for part, offset in zip(self.plastic.plastic, self.net.parts[:, kernels.TAGS], strict=True):
            size = weights[part.name].size
            tags[part.name] = self.matrix(part.name, self.results.committed[offset : offset + size])
        return log.result(weights, tags)

    def matrix(self, name: str, values: Array) -> Array:
        """Values of the synapses of a projection (targets, sources)."""
        targets, sources = self.plastic.projection(name).weight.shape
        return values.reshape(sources, targets).T.copy()

    def recorded(self, name: str, variable: str) -> Array:
        """A recorded variable of a population (samples, steps, units), in floating point."""
        row = {"spikes": 0, "drive": 1}.get(variable, 2)
        values = self.results.activity[:, :, row, self.units[name]]
        neurons = self.neurons[name]
        return neurons.payload(values) if variable == "spikes" else values * neurons.shown
