"""The rule of `neuro_eqprop.spiking.plasticity` in compiled code, for whole training sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files import deadlines
from neuro_eqprop.simulators.emulator import numba_error
from neuro_eqprop.simulators.learning import (
    Events,
    Learned,
    ProgressCallback,
    Synapses,
    empty_history,
    engine_draws,
    part_of,
    recordings,
    tally_learning,
)
from neuro_eqprop.simulators.recordings import NOTHING, Recording
from neuro_eqprop.spiking.counter_rng import mix
from neuro_eqprop.spiking.fixed_point import (
    ONE,
    GradedIntegers,
    nearest,
    to_12_bits,
)
from neuro_eqprop.spiking.fixed_point import weights as integer_weights
from neuro_eqprop.spiking.ir import Gain, Graded, Population
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
    third_factors,
)

AT_ONCE = 2**25
"""Synapse-steps per call of compiled code: a fraction of a second, so that Ctrl-C works."""


@dataclass(frozen=True, slots=True)
class EmulatorLearner:
    """Learns sample by sample in compiled code, in float64 or in integers.

    The first run on a machine compiles for some seconds; the code is then cached on disk.
    """

    name: str = "emulator"

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for samples that do not fit the network."""
        training.stimulus.check(plastic.network)

    def learn(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        *,
        synapses: Synapses,
        progress: ProgressCallback,
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, training)
        run = LearningRun(plastic, training, synapses)
        batch = plastic.rule.batch
        work = plastic.rule.steps * (sum(p.size for p in plastic.network.populations) + 1)
        stride = max(1, AT_ONCE // (work * 100 * batch)) * batch
        for start in range(0, training.stimulus.samples, stride):
            stop = min(start + stride, training.stimulus.samples)
            run.learn(start, stop)
            progress(stop - start)
        return run.result()


class LearningRun:
    """State of a learning run, in the flat arrays of `learning_kernels`."""

    def __init__(
        self, plastic: PlasticNetwork, training: TrainingSamples, synapses: Synapses
    ) -> None:
        try:
            from neuro_eqprop.simulators.emulator import learning_kernels, packed
        except ImportError as error:
            raise numba_error(error) from error
        self.kernels, self.constants = learning_kernels, packed.constants
        self.plastic, self.training, self.synapses = plastic, training, synapses
        self.network, self.rule = plastic.network, plastic.rule
        self.names = [p.name for p in self.network.populations]
        ends = np.cumsum([0, *(p.size for p in self.network.populations)])
        self.starts = dict(zip(self.names, ends[:-1].tolist(), strict=True))
        self.units = int(ends[-1])
        self.numbers = packed.integer_populations(self.network)
        self._pack_populations()
        self._pack_weights()
        self._pack_parts()
        self._pack_results()
        self.chosen, self.scales = self._pack_synapses()

    def _pack_populations(self) -> None:
        rows, constants = [], []
        for population in self.network.populations:
            start = self.starts[population.name]
            rows.append([start, start + population.size, *self.kind(population)])
            constants.append(self.constants(self.numbers.get(population.name, population.neuron)))
        self.populations = np.array(rows, dtype=np.int64)
        self.rows = np.array(constants)

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

    def _pack_weights(self) -> None:
        rows, weights, gains, offset = [], [], [], 0
        scales = {n: p.scale for p in self.plastic.plastic for n in (p.name, p.mirror) if n}
        self.places: dict[str, int] = {}
        for j, projection in enumerate(self.network.projections):
            by_beta = projection.gain is Gain.BETA
            weight, gain = projection.weight, np.ones_like(projection.weight)
            if self.network.fixed is not None and (by_beta or projection.name not in scales):
                weight = integer_weights(self.network, projection).astype(float)
            elif self.network.fixed is not None:
                source = self.network[projection.source].neuron
                theta = source.theta if isinstance(source, Graded) else 1.0
                step = scales[projection.name]
                weight = projection.weight / step
                gain = gain * (step * theta / self.network.fixed.units[projection.target])
            elif not by_beta:
                gain = self.plastic.gains.get(projection.name, gain)
            ends = (self.names.index(projection.source), self.names.index(projection.target))
            rows.append([*ends, int(by_beta), offset])
            if not by_beta:
                self.places[projection.name] = j
            weights.append(np.ascontiguousarray(weight.T).ravel())
            gains.append(np.ascontiguousarray(gain.T).ravel())
            offset += weight.size
        self.projections = np.array(rows, dtype=np.int64).reshape(-1, 4)
        self.weights, self.gains = np.concatenate(weights), np.concatenate(gains)
        if isinstance(self.rule.numbers, LoihiEngine) and not self.training.first:
            for name in self.plastic.learns:
                part = self.span(name)
                self.weights[part] = 2.0 * np.floor(self.weights[part] / 2.0)
        self.effective = self.weights * self.gains

    def span(self, name: str) -> slice:
        """The slice of `weights` that belongs to a projection."""
        j = self.places[name]
        offset = int(self.projections[j, 3])
        return slice(offset, offset + self.network.projections[j].weight.size)

    def _pack_parts(self) -> None:
        rows, limits, offset = [], [], 0
        numbers = self.rule.numbers
        for part in self.plastic.plastic:
            mirror = -1 if part.mirror is None else self.places[part.mirror]
            rows.append([self.places[part.name], mirror, offset])
            low, high = (-part.limit, part.limit) if numbers is None else numbers.range
            limits.append([float(low), float(high), part.mirrored])
            offset += self.plastic.projection(part.name).weight.size
        self.parts = np.array(rows, dtype=np.int64).reshape(-1, 3)
        self.limits = np.array(limits).reshape(-1, 3)
        self.tags, self.committed = np.zeros(offset), np.zeros(offset)
        self.touched = np.zeros((len(rows), self.units), dtype=np.uint8)

    def _pack_results(self) -> None:
        phases, samples = len(self.rule.schedule) + 1, self.training.stimulus.samples
        self.state, self.traces = np.zeros((9, self.units)), np.zeros(self.units)
        self.drives = np.zeros((samples, self.network[self.network.output].size))
        self.nudged = np.ones(samples, dtype=np.int64)
        self.sent = np.zeros((phases, self.units), dtype=np.int64)
        self.counted = np.zeros((3, phases, len(self.names)), dtype=np.int64)
        self.totals = np.zeros(2, dtype=np.int64)
        self.history = empty_history(self.synapses, samples, self.rule.steps)
        recorded = samples if self.synapses.activity != NOTHING else 0
        self.activity = np.zeros((recorded, self.rule.steps - 1, 3, self.units))

    def _pack_synapses(self) -> tuple[Ints, Array]:
        rows, scales = [], []
        for name, target, source in self.synapses.chosen:
            owner = part_of(self.plastic, name)
            k = self.plastic.plastic.index(owner)
            projection = self.plastic.projection(name)
            targets, sources = projection.weight.shape
            weight = self.span(name).start + source * targets + target
            tag = int(self.parts[k, 2])
            tag += source * targets + target if name == owner.name else target * sources + source
            pre = self.starts[projection.source] + source
            rows.append([pre, self.starts[projection.target] + target, tag, weight])
            scales.append(1.0 if self.rule.numbers is None else owner.scale)
        return np.array(rows, dtype=np.int64).reshape(-1, 4), np.array(scales)

    def to_units(self, name: str, values: Array | None, samples: int) -> Array:
        """External input in the number format of a population; zeros for None."""
        size = self.network[name].size
        if values is None:
            return np.zeros((samples, size))
        if name not in self.numbers:
            return values
        return np.asarray(nearest(values, self.numbers[name].unit).astype(float))

    def learn(self, start: int, stop: int) -> None:
        """Learn from the samples from `start` up to `stop`."""
        stimulus, samples = self.training.stimulus.take(start, stop), stop - start
        given, pull = np.zeros((samples, self.units)), np.zeros((samples, self.units))
        for population in self.network.populations:
            name, a = population.name, self.starts[population.name]
            here = slice(a, a + population.size)
            bias = self.numbers[name].bias if self.numbers else population.bias
            given[:, here] = bias + self.to_units(name, stimulus.current.get(name), samples)
            pull[:, here] = self.to_units(name, stimulus.pull.get(name), samples)
        rule, rates = self.rule, self.training.rates[start:stop]
        lengths = np.array([(p.steps, p.window) for p in rule.schedule], dtype=np.int64)
        betas = np.array([self.beta(p.beta) for p in rule.schedule])
        first = self.training.first + start
        final = int(stop == self.training.stimulus.samples)
        flags = (rule.batch, int(rule.fresh), self.mode, first, int(start > 0), final)
        settings = np.array(flags, dtype=np.int64)
        self.kernels.learn_all(
            self.populations,
            self.rows,
            self.projections,
            self.parts,
            self.limits,
            lengths,
            betas,
            np.array([*rule.gates, 0.0]),
            self.rule_constants(),
            settings,
            mix(np.array([self.seed], dtype=np.uint64))[0],
            given,
            pull,
            self.targets(start, stop),
            self.etas(start, stop),
            self.engine_factors(rates),
            self.draws(first, samples),
            self.names.index(self.network.output),
            self.weights,
            self.gains,
            self.effective,
            self.state,
            self.traces,
            self.tags,
            self.committed,
            self.touched,
            self.drives[start:stop],
            self.nudged[start:stop],
            self.sent,
            self.counted,
            self.totals,
            self.chosen,
            self.scales,
            self.history[start:stop],
            self.activity[start:stop],
            deadlines.current().flag,
        )
        deadlines.check()

    def beta(self, beta: float) -> float:
        """The beta of a phase; in integers rounded to 12 bits."""
        return to_12_bits(beta) / ONE if self.numbers else beta

    @property
    def mode(self) -> int:
        """The number format, as the kernels encode it."""
        if self.rule.numbers is None:
            return self.kernels.FLOAT
        return (
            self.kernels.INTEGER
            if isinstance(self.rule.numbers, IntegerArithmetic)
            else self.kernels.ENGINE
        )

    @property
    def seed(self) -> int:
        """The seed of stochastic rounding."""
        return 0 if self.rule.numbers is None else self.rule.numbers.seed

    def rule_constants(self) -> Array:
        """The constants of the rule, in the order of the columns KEEP to MARGIN."""
        rule, numbers = self.rule, self.rule.numbers
        if numbers is None:
            return np.array([rule.keep, 1.0 - rule.keep, np.inf, 0.0, rule.margin])
        scaled = 2.0 ** (7 + numbers.exponent) if isinstance(numbers, LoihiEngine) else 0.0
        top = float(numbers.top)
        return np.array([rule.keep, float(rule.impulse), top, scaled, rule.margin * top])

    def targets(self, start: int, stop: int) -> Array:
        """The traces of the output at its targets (samples, outputs); zeros without targets."""
        output = self.network.output
        pull = self.training.stimulus.pull.get(output)
        if pull is None:
            return np.zeros((stop - start, self.network[output].size))
        pull = pull[start:stop]
        return pull if self.rule.numbers is None else pull * self.rule.numbers.top

    def etas(self, start: int, stop: int) -> Array:
        """The learning rate eta of a commit after each sample (samples, parts)."""
        found = np.zeros((stop - start, len(self.plastic.plastic)))
        for sample in range(start, stop):
            rate, done = float(self.training.rates[sample]), sample % self.rule.batch + 1
            for k, part in enumerate(self.plastic.plastic):
                found[sample - start, k] = self.to_weight_steps(
                    part, self.plastic.eta(part, rate, done)
                )
        return found

    def to_weight_steps(self, part: Plastic, eta: float) -> float:
        """eta in weight steps if weights are integers, else unchanged."""
        numbers = self.rule.numbers
        return (
            eta / (part.scale * numbers.top**2) if isinstance(numbers, IntegerArithmetic) else eta
        )

    def engine_factors(self, rates: Array) -> Array:
        """y2 of Lava's engine for each sample; zeros without the engine."""
        if not isinstance(self.rule.numbers, LoihiEngine):
            return np.zeros(len(rates))
        return np.asarray(third_factors(self.rule.numbers, rates).astype(float))

    def draws(self, first: int, samples: int) -> Array:
        """Random numbers of Lava's engine for these samples (3, steps); zeros for other rules."""
        engine = self.rule.numbers
        if not isinstance(engine, LoihiEngine):
            return np.zeros((3, 1))
        stop = (first + samples) * self.rule.steps
        return np.ascontiguousarray(engine_draws(engine, stop)[:, first * self.rule.steps :])

    def result(self) -> Learned:
        """The result of the run."""
        weights, saturated = self.final_weights()
        tags = {}
        for part, (_, _, offset) in zip(self.plastic.plastic, self.parts.tolist(), strict=True):
            targets, sources = self.plastic.projection(part.name).weight.shape
            found = self.committed[offset : offset + targets * sources]
            tags[part.name] = found.reshape(sources, targets).T.copy()
        network, output = self.network, self.network.output
        shown = self.numbers[output].shown if self.numbers else 1.0
        pieces = {p.name: slice(self.starts[p.name], None) for p in network.populations}
        sent = {p.name: self.sent[:, pieces[p.name]][:, : p.size] for p in network.populations}
        events = Events(sent, self.counted[0], self.counted[1], self.counted[2], self.nudged)
        return Learned(
            weights,
            tags,
            self.drives * shown / self.rule.schedule[0].window,
            tally_learning(self.plastic, self.training, events),
            saturated,
            int(self.totals[0]),
            int(self.totals[1]),
            self.history,
            self.recordings(),
            self.nudged,
        )

    def recordings(self) -> tuple[Recording, ...]:
        """The recorded activity in floating point."""
        record = self.synapses.activity
        spikes = {name: self.recorded(name, "message") for name in record.spikes}
        signals = {
            (name, variable): self.recorded(name, variable) for name, variable in record.signals
        }
        return recordings(record, spikes, signals)

    def recorded(self, name: str, variable: str) -> Array:
        """A recorded variable of a population (samples, steps, units)."""
        row = {"message": 0, "drive": 1}.get(variable, 2)
        start, size = self.starts[name], self.network[name].size
        values = self.activity[:, :, row, start : start + size]
        if name not in self.numbers:
            return values
        numbers = self.numbers[name]
        if variable == "message":
            return values * (numbers.theta if isinstance(numbers, GradedIntegers) else 1.0)
        return values * numbers.shown

    def final_weights(self) -> tuple[dict[str, Array], dict[str, int]]:
        """The weights in floating point, and the number of weights at a limit."""
        weights, saturated = {}, {}
        for part, (low, high, _) in zip(self.plastic.plastic, self.limits.tolist(), strict=True):
            size = 1.0 if self.rule.numbers is None else part.scale
            flat = self.weights[self.span(part.name)]
            at_limit = int(np.count_nonzero((flat <= low) | (flat >= high)))
            for name in (part.name, part.mirror):
                if name is not None:
                    targets, sources = self.plastic.projection(name).weight.shape
                    found = self.weights[self.span(name)].reshape(sources, targets)
                    weights[name] = size * found.T
                    saturated[name] = at_limit
        return weights, saturated
