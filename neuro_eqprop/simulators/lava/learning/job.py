"""A learning job on Lava, passed between two Python processes as files.

Lava's learning engine has a trace x1 of the source, factors y1, y2, y3 that the target sends, a tag
t and a weight w. In floating point its rule after every step is

    dt = x1 y1 y2 - t y3            (2 x1 y1 y2 for a graded source, whose x1 is half of r_pre)
    dw = share t y1 y3

In a step of a phase, a target sends y1 = r_post, y2 = f and y3 = 0, where f is zero outside the
window. In a commit it sends y1 = eta / share, y2 = 0 and y3 = 1. This is the rule of
`neuro_eqprop.spiking.plasticity`. In integers, where the engine multiplies only by powers of two,
the rule is

    dt = 2^-7 x1 y1 y2 - t y3
    dw = 2^exponent t y3

with y3 = 32 in a commit, which represents 1.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import frexp, log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava import job as lava_job
from neuro_eqprop.simulators.lava.job import Job, Part, Tick
from neuro_eqprop.simulators.recordings import NOTHING, Record
from neuro_eqprop.spiking.arithmetic import to_12_bits
from neuro_eqprop.spiking.ir import Graded, Projection
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    LearningRule,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)

DESCRIPTION_FILE = "learning.json"


@dataclass(frozen=True, slots=True)
class LearningJob:
    """A plastic network, its training samples, and the synapses and signals to record."""

    plastic: PlasticNetwork
    training: TrainingSamples
    chosen: tuple[tuple[str, int, int], ...] = ()
    """Synapses to record: (projection, target unit, source unit)."""
    activity: Record = NOTHING
    """Spikes and signals of populations to record."""

    @property
    def job(self) -> Job:
        """The simulation job; the commit is a phase of one step."""
        schedule = (*self.plastic.rule.schedule, Phase(COMMIT, 0.0, 1, 1))
        return Job(self.plastic.network, self.training.stimulus, schedule, self.activity)

    @property
    def engine(self) -> LoihiEngine | None:
        """The settings of the integer learning engine; None in floating point."""
        numbers = self.plastic.rule.numbers
        return numbers if isinstance(numbers, LoihiEngine) else None

    def of(self, name: str) -> list[int]:
        """Indices into `chosen` of the synapses of a projection."""
        return [k for k, (projection, _, _) in enumerate(self.chosen) if projection == name]

    def learner(self, name: str) -> Plastic:
        """The plasticity of a projection; a mirror has its own, since Lava trains it, too."""
        for part in self.plastic.plastic:
            if part.name == name:
                return part
            if part.mirror == name:
                factor = part.mirrored
                limit, share = factor * part.limit, factor * part.share
                return Plastic(name, limit, share=share, scale=part.scale)
        raise KeyError(name)

    def weight_step(self, name: str) -> float:
        """The value of one integer weight step of a projection; 1 in floating point."""
        return 1.0 if self.engine is None else self.learner(name).scale

    def exponent(self, projection: Projection) -> int:
        """Base-2 exponent of one weight step in units of the target; 0 in floating point."""
        fixed = self.plastic.network.fixed
        if fixed is None:
            return 0
        return round(log2(self.learner(projection.name).scale / fixed.units[projection.target]))


@dataclass(frozen=True, slots=True)
class LearningPopulation(Part):
    """Parameters of the process of a population that learns."""

    learning: LearningJob
    recorded: bool = True
    """Whether the process writes result files; otherwise `folder` is not used."""


class StepControl(NamedTuple):
    """Header of the message that the source sends to every population in each step."""

    start: float
    """Whether the population is reset before this step."""
    beta: float
    """Beta of the phase; in integers in multiples of 1/4096."""
    silent: float
    """Whether this step is the commit, in which the neurons do not advance."""
    third: float
    """y2, the third factor f."""
    pulse: float
    """y3, which is above zero in a commit that changes the weights."""
    eta: float
    """Factor of the tag in this commit, without the share; zero in integers."""


def step_control(
    rule: LearningRule, now: Tick, *, sample: int, first: bool, rate: float
) -> StepControl:
    """The control values of a step; `first` marks the first step of a sample.

    The pulse is set in the commit of the last sample of a batch. A source that knows the number of
    samples also sets it for the last sample of the run.
    """
    silent = now.phase == len(rule.schedule)
    third = rule.gates[now.phase] if now.counts and not silent else 0.0
    done = sample % rule.batch + 1
    eta = rate / (rule.gap * rule.window * done)
    start = first and (rule.fresh or sample == 0)
    return StepControl(start, now.beta, silent, third, silent and done == rule.batch, eta)


PULSE = 32
"""y3 of a commit in integers, which represents 1."""


def integer_control(control: StepControl, factor: int) -> StepControl:
    """Control values in integers: beta counts 1/4096, y2 is times the sample's factor."""
    beta, third = to_12_bits(control.beta), control.third * factor
    return control._replace(beta=beta, third=third, pulse=PULSE * control.pulse, eta=0.0)


def message_slices(job: Job) -> dict[tuple[str, str], slice]:
    """Slices of the source's message by population and by "current" or "pull"."""
    found, start = {}, len(StepControl._fields)
    for what, arrays in (("current", job.stimulus.current), ("pull", job.stimulus.pull)):
        for population in job.network.populations:
            if population.name in arrays:
                found[population.name, what] = slice(start, start + population.size)
                start += population.size
    return found


def message_size(job: Job) -> int:
    """Length of the message that the source sends in a step."""
    return max(
        (place.stop for place in message_slices(job).values()), default=len(StepControl._fields)
    )


def literal(share: float, name: str) -> str:
    """The factor `share` in the syntax of Lava's learning rules: n 2^k with an integer n < 8."""
    mantissa, exponent = frexp(share)
    factor, exponent = mantissa * 8, exponent - 3
    while factor % 2 == 0:
        factor, exponent = factor / 2, exponent + 1
    if factor != int(factor) or not -7 <= exponent <= 8:
        raise BackendError(
            f"lava: {name!r} learns at {share!r} of the rate, which its rules cannot "
            "express: they allow integers below 8 times a power of two; use the emulator"
        )
    return "" if share == 1.0 else f"{int(factor)}*2^{exponent}*"


def formulas(learning: LearningJob, projection: Projection) -> tuple[str, str]:
    """The formulas dw and dt of a projection, in the syntax of Lava."""
    engine = learning.engine
    if engine is not None:
        return f"2^{engine.exponent}*u0*t*y3", "2^-7*u0*x1*y1*y2 - u0*t*y3"
    graded = isinstance(learning.plastic.network[projection.source].neuron, Graded)
    share = literal(learning.learner(projection.name).share, projection.name)
    return f"{share}u0*t*y1*y3", f"{'2*' if graded else ''}u0*x1*y1*y2 - u0*t*y3"


def save(learning: LearningJob, folder: Path) -> None:
    """Write the job into the folder."""
    rule, training = learning.plastic.rule, learning.training
    lava_job.save(learning.job, folder)
    described = {
        "tau": rule.tau,
        "batch": rule.batch,
        "fresh": rule.fresh,
        "engine": None if learning.engine is None else asdict(learning.engine),
        "plastic": [asdict(part) for part in learning.plastic.plastic],
        "rates": training.rates.tolist(),
        "first": training.first,
        "chosen": learning.chosen,
    }
    write_text(folder / DESCRIPTION_FILE, json.dumps(described))


def load(folder: Path) -> LearningJob:
    """Read the job from the folder; the constructors validate it."""
    job = lava_job.load(folder)
    described: dict[str, Any] = json.loads((folder / DESCRIPTION_FILE).read_text())
    engine = described["engine"]
    rule = LearningRule(
        job.schedule[:-1],
        described["tau"],
        batch=described["batch"],
        fresh=described["fresh"],
        numbers=None if engine is None else LoihiEngine(**engine),
    )
    parts = tuple(Plastic(**part) for part in described["plastic"])
    plastic = PlasticNetwork(job.network, parts, rule)
    training = TrainingSamples(job.stimulus, np.array(described["rates"]), described["first"])
    chosen = tuple((name, target, source) for name, target, source in described["chosen"])
    return LearningJob(plastic, training, chosen, job.record)
