"""Populations of a network that learns on Lava.

They send their synapses the factors y1, y2 and y3 of `neuro_eqprop.simulators.lava.engine`, and
keep the traces that Lava's engine keeps of them.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name, where
# dataclasses could not resolve annotations given as text.

from dataclasses import dataclass

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import OutPort
from lava.magma.core.process.process import ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.engine import PULSE, engine_of
from neuro_eqprop.simulators.lava.native.exact.populations import (
    PopulationModel,
    PopulationPart,
    PopulationProcess,
)
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import LEAST, EpisodeStep, PlasticNetwork, third_factors


@dataclass(frozen=True)
class LearningPart(PopulationPart):
    """What the process of a population that learns is told, beside its network and its input."""

    plastic: PlasticNetwork | None = None
    rates: tuple[float, ...] = ()
    """Learning rate of each sample; later samples have the last one."""
    ends: bool = False
    """Whether the run ends with the sample of the last rate, in which weights change then."""
    first: int = 0
    """Number of samples learned before."""


class LearningProcess(PopulationProcess):
    """Neurons that send y1, y2 and y3 to their synapses."""

    def __init__(self, part: LearningPart) -> None:
        super().__init__(part)
        shape = (part.population.size,)
        self.y1 = OutPort(shape=shape)
        self.y2 = OutPort(shape=shape)
        self.y3 = OutPort(shape=shape)


class LearningSpikes(LearningProcess):
    """Leaky integrate-and-fire neurons with a spike trace."""


class LearningGraded(LearningProcess):
    """Sigma-delta units, whose trace is the sum of their messages."""


class LearningModel(PopulationModel):
    """Neurons that are silent in the commit, and send what the engine needs in every step."""

    part: LearningPart

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        assert self.part.plastic is not None
        self.rule = self.part.plastic.rule
        self.trace = np.zeros(self.population.size)
        self.counts = np.zeros(len(self.rule.schedule) + 1, dtype=np.int64)

    def step(self, sample: int, step: int) -> None:
        """Receive, advance unless it is the commit, send, and update the trace."""
        one, by_beta, outside = self.receive(sample, step)
        now, commit = self.rule.episode[step], step == self.rule.steps - 1
        sent = self.no_input
        if not commit:
            sent = self.neurons.advance(one, by_beta, now.beta, outside)
        self.s_out.send(self.commit_message() if commit else sent)
        new = self.new_trace(sent, commit)
        self.counts[now.phase] += np.count_nonzero(new != self.trace)
        self.trace = new
        rates = self.part.rates
        rate = rates[min(sample, len(rates) - 1)]
        done = sample % self.rule.batch + 1
        last = self.part.ends and sample == len(rates) - 1
        pulse = commit and (last or done == self.rule.batch)
        self.send_factors(now, rate, done if commit else 0, pulse)
        self.show(sent)
        if commit:
            self.end_sample()
        if self.watch is not None:
            self.watch.add_trace(self.trace, self.counts)

    def end_sample(self) -> None:
        """What changes after a commit."""

    def commit_message(self) -> Numbers:
        """The message that the population sends in a commit: no spikes."""
        return np.zeros(self.trace.size, dtype=bool)

    def new_trace(self, sent: Numbers, commit: bool) -> Array:
        """The trace after a step in which the units sent `sent`."""
        raise NotImplementedError

    def send_factors(self, now: EpisodeStep, rate: float, done: int, pulse: bool) -> None:
        """Send y1, y2 and y3; `done` is the samples since the last commit, in a commit."""
        raise NotImplementedError


class FloatLearningModel(LearningModel):
    """A learning population in float64."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, float)

    def send_factors(self, now: EpisodeStep, rate: float, done: int, pulse: bool) -> None:
        """Send the trace as y1; in a commit, send eta without the share instead."""
        ones = np.ones_like(self.trace)
        eta = rate / (self.rule.gap * self.rule.window * done) if done else 0.0
        self.y1.send(eta * ones if done else self.trace)
        self.y2.send(now.gate * ones)
        self.y3.send(float(pulse) * ones)


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningSpikesModel(FloatLearningModel):
    """The step in float64; traces equal those of Lava's engine."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)

    def new_trace(self, sent: Numbers, commit: bool) -> Array:
        """r = keep r, then + 1 - keep where s."""
        keep = self.rule.keep
        kept = keep * self.trace
        new = np.where(sent, kept + (1.0 - keep), kept)
        return np.asarray(np.where(new < LEAST, 0.0, new))


@implements(proc=LearningGraded, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class LearningGradedModel(FloatLearningModel):
    """The step in float64.

    Synapses sum the messages in x1, which a learning rule cannot reset. A unit therefore sends
    minus that sum in the commit. Its targets ignore this message, since each sample starts from
    the resting state.
    """

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def commit_message(self) -> Numbers:
        """Minus the sum of all messages of the sample."""
        return np.asarray(-self.neurons.firing())

    def new_trace(self, sent: Numbers, commit: bool) -> Array:
        """r = sent, the sum of all messages; a commit leaves it unchanged."""
        return self.trace if commit else np.array(self.neurons.firing())

    def end_sample(self) -> None:
        """The trace is zero after a commit."""
        self.trace = np.zeros_like(self.trace)


@implements(proc=LearningSpikes, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class LearningIntegersModel(LearningModel):
    """The step in integers; traces equal those of Lava's engine.

    In each step, the engine rounds x1 of all synapses with one random number. This model draws the
    same number from the same seed, so that y1 equals x1 and mirrored synapses see equal traces.
    """

    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, np.int32)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        assert self.part.plastic is not None
        engine = engine_of(self.part.plastic)
        assert engine is not None
        self.engine = engine
        self.rng = np.random.default_rng(engine.seed)
        self.rng.random(1 + 2 * self.part.first * self.rule.steps)

    def new_trace(self, sent: Numbers, commit: bool) -> Array:
        """The integer trace, rounded with the random number of Lava's engine in this step."""
        kept = self.rule.keep * self.trace
        new = np.floor(kept) + (self.rng.random(2)[1] < kept % 1)
        return np.asarray(np.where(sent, np.minimum(new + self.rule.impulse, 127.0), new))

    def send_factors(self, now: EpisodeStep, rate: float, done: int, pulse: bool) -> None:
        """Send the trace as y1, the gate times the factor of the rate, and the pulse."""
        ones = np.ones(self.trace.size, dtype=np.int32)
        factor = int(third_factors(self.engine, np.array([rate]))[0]) if now.gate else 0
        self.y1.send(self.trace.astype(np.int32))
        self.y2.send(int(now.gate * factor) * ones)
        self.y3.send(PULSE * pulse * ones)
