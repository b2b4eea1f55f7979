"""What is to be learned on Lava, as files between two Python processes.

Lava's learning engine has traces x1 of the source and y1, y2, y3 as the target sends them, a tag
t and a weight w. In floats its rule is, after every step,

    dt = x1 y1 y2 - t y3            (twice that of a graded source, whose x1 is half of r_pre)
    dw = share t y1 y3

and a target sends y1 = r_post, y2 = f, y3 = 0 in a step of a phase, f being zero outside a window,
and y1 = eta / share, y2 = 0, y3 = 1 in a commit: the rule of `neuro_eqprop.spiking.plasticity`.
In integers it is, a power of two being all that it can multiply with,

    dt = 2^-7 x1 y1 y2 - t y3
    dw = 2^exponent t y3

with y3 = 32 in a commit, which stands for one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import frexp, log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuro_eqprop.backends.base import BackendError
from neuro_eqprop.backends.lava import job as lava_job
from neuro_eqprop.backends.lava.job import Job, Part, Tick
from neuro_eqprop.schedules import Phase
from neuro_eqprop.spiking.ir import Graded, Projection
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    LearningRule,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)
from neuro_eqprop.traces import NOTHING

DESCRIPTION_FILE = "course.json"


@dataclass(frozen=True, slots=True)
class LearningJob:
    """Samples for a network, and the synapses whose history is told."""

    plastic: PlasticNetwork
    lessons: TrainingSamples
    chosen: tuple[tuple[str, int, int], ...] = ()

    @property
    def job(self) -> Job:
        """The same as a run, in which the commit is a phase of one step."""
        schedule = (*self.plastic.rule.schedule, Phase(COMMIT, 0.0, 1, 1))
        return Job(self.plastic.network, self.lessons.stimulus, schedule, NOTHING)

    @property
    def engine(self) -> LoihiEngine | None:
        """How learning goes in integers, if it does."""
        numbers = self.plastic.rule.numbers
        return numbers if isinstance(numbers, LoihiEngine) else None

    def of(self, name: str) -> list[int]:
        """The places among the chosen of the synapses of a projection."""
        return [k for k, (projection, _, _) in enumerate(self.chosen) if projection == name]

    def learner(self, name: str) -> Plastic:
        """How the projection of that name learns; a mirror as if it learned alone."""
        for part in self.plastic.plastic:
            if part.name == name:
                return part
            if part.mirror == name:
                factor = part.mirrored
                limit, share = factor * part.limit, factor * part.share
                return Plastic(name, limit, share=share, scale=part.scale)
        raise KeyError(name)

    def exponent(self, projection: Projection) -> int:
        """In integers, the power of two that a weight of one counts in its target's unit."""
        fixed = self.plastic.network.fixed
        if fixed is None:
            return 0
        return round(log2(self.learner(projection.name).scale / fixed.units[projection.target]))


@dataclass(frozen=True, slots=True)
class LearningPopulation(Part):
    """The parameters of one process that learns."""

    course: LearningJob
    recorded: bool = True
    """Whether it writes what it did to the folder; without, no folder is needed."""


class StepControl(NamedTuple):
    """What the source sends every population in each step, before currents and pulls."""

    start: float
    """Whether it is at rest before this step."""
    beta: float
    """Of the phase; in integers a multiple of 1/4096."""
    silent: float
    """Whether it is the commit, in which no unit sends."""
    third: float
    """y2."""
    pulse: float
    """y3."""
    eta: float
    """What a tag counts in this commit, before the share; zero in integers."""


def step_control(
    rule: LearningRule, now: Tick, *, sample: int, first: bool, rate: float
) -> StepControl:
    """The control of a step; `first` marks the first one of a sample.

    The batch is full if its last sample ends; a source that knows the last sample of all fills it.
    """
    silent = now.phase == len(rule.schedule)
    third = rule.gates[now.phase] if now.counts and not silent else 0.0
    done = sample % rule.batch + 1
    eta = rate / (rule.gap * rule.window * done)
    start = first and (rule.fresh or sample == 0)
    return StepControl(start, now.beta, silent, third, silent and done == rule.batch, eta)


def places(job: Job) -> dict[tuple[str, str], slice]:
    """Where, in what the source sends, the current and the pull of each population are."""
    found, start = {}, len(StepControl._fields)
    for what, arrays in (("current", job.stimulus.current), ("pull", job.stimulus.pull)):
        for population in job.network.populations:
            if population.name in arrays:
                found[population.name, what] = slice(start, start + population.size)
                start += population.size
    return found


def message_size(job: Job) -> int:
    """How many numbers the source sends in a step."""
    return max((place.stop for place in places(job).values()), default=len(StepControl._fields))


def literal(share: float, name: str) -> str:
    """A share as Lava's rules can write it: an integer below eight times a power of two."""
    mantissa, exponent = frexp(share)
    whole, exponent = mantissa * 8, exponent - 3
    while whole % 2 == 0:
        whole, exponent = whole / 2, exponent + 1
    if whole != int(whole) or not -7 <= exponent <= 8:
        raise BackendError(
            f"lava: {name!r} learns at {share!r} of the rate, which its rules cannot say; "
            "they have integers below 8 times a power of two. Use the emulator"
        )
    return "" if share == 1.0 else f"{int(whole)}*2^{exponent}*"


def formulas(course: LearningJob, projection: Projection) -> tuple[str, str]:
    """dw and dt of a projection."""
    engine = course.engine
    if engine is not None:
        return f"2^{engine.exponent}*u0*t*y3", "2^-7*u0*x1*y1*y2 - u0*t*y3"
    graded = isinstance(course.plastic.network[projection.source].neuron, Graded)
    share = literal(course.learner(projection.name).share, projection.name)
    return f"{share}u0*t*y1*y3", f"{'2*' if graded else ''}u0*x1*y1*y2 - u0*t*y3"


def save(course: LearningJob, folder: Path) -> None:
    """Write the course into the folder."""
    rule, lessons = course.plastic.rule, course.lessons
    lava_job.save(course.job, folder)
    described = {
        "tau": rule.tau,
        "batch": rule.batch,
        "fresh": rule.fresh,
        "engine": None if course.engine is None else asdict(course.engine),
        "plastic": [asdict(part) for part in course.plastic.plastic],
        "rates": lessons.rates.tolist(),
        "first": lessons.first,
        "chosen": course.chosen,
    }
    (folder / DESCRIPTION_FILE).write_text(json.dumps(described))


def load(folder: Path) -> LearningJob:
    """Read the course back; the types check what they are made of."""
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
    lessons = TrainingSamples(job.stimulus, np.array(described["rates"]), described["first"])
    chosen = tuple((name, target, source) for name, target, source in described["chosen"])
    return LearningJob(plastic, lessons, chosen)
