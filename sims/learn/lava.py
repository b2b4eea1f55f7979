"""Write docs/learning-lava.md: three classes of digits learned inside one run of Lava each.

Run it with `.venv/bin/python sims/learn/lava.py` (ten minutes or so on one core); with `--speed N`
only the speeds are measured again, by N lessons on Lava.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from neuro_eqprop.activations import HARD_SIGMOID
from neuro_eqprop.architectures import layered
from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.learning import NO_SYNAPSES, Learned, nobody
from neuro_eqprop.backends.registry import load_backend, load_learner
from neuro_eqprop.data import Split, load_digits, one_hot
from neuro_eqprop.initialise import initialise
from neuro_eqprop.io.atomic import write_text
from neuro_eqprop.networks import Network
from neuro_eqprop.schedules import free_only
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    for_inference,
    make_plastic,
    training_stimulus,
    with_weights,
)
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    LearningRule,
    PlasticNetwork,
    TrainingSamples,
    engine_for,
)
from neuro_eqprop.traces import NOTHING, MemorySink

CLASSES, BETA, RATE, LIMIT, BIAS, TAU = 3, 0.5, 0.05, 2.0, 0.3, 8.0
ASKED = free_only(steps=64, window=32)
SEEDS = range(5)
EMULATED = 150
"""Lessons by which the emulator's speed is measured."""


@dataclass(frozen=True, slots=True)
class Run:
    """How lessons are coded, and the steps of their phases."""

    title: str
    code: Code
    free: int
    settle: int
    window: int
    whole: bool = False

    def rule(self, seed: int) -> LearningRule:
        """The rule of learning."""
        phases = PhaseLengths(self.free, self.settle, self.window).schedule(
            beta=BETA, centered=True
        )
        made = engine_for(RATE, gap=2 * BETA, window=self.window, scale=LIMIT / 256, seed=seed)
        return LearningRule(phases, TAU, numbers=made if self.whole else None)


RUNS = (
    Run("rate, real numbers", Code.RATE, 16, 16, 16),
    Run("graded, real numbers", Code.GRADED, 16, 12, 4),
    Run("rate, fixed point", Code.RATE, 16, 16, 16, whole=True),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A network before its lessons, the lessons, and the samples that it is asked."""

    plastic: PlasticNetwork
    lessons: TrainingSamples
    network: Network
    coding: Coding
    test: Split

    def accuracy(self, weights: Mapping[str, Array]) -> float:
        """Of the spiking network with these weights, asked on the emulator without a nudge."""
        nothing = np.zeros((len(self.test), CLASSES))
        stimulus = training_stimulus(self.network, self.test.x, nothing, self.coding)
        asked = for_inference(with_weights(self.plastic, weights))
        result = load_backend("emulator").run(
            asked, replace(stimulus, pull={}), ASKED, record=NOTHING, sink=MemorySink()
        )
        return float((result.drive[asked.output][:, 0].argmax(axis=1) == self.test.y).mean())

    @property
    def start(self) -> dict[str, Array]:
        """The weights before the first lesson."""
        return {name: self.plastic.projection(name).weight for name in self.plastic.learns}


def task(run: Run, seed: int, count: int) -> Task:
    """Digits 0, 1 and 2 for a network 64-32-3."""
    data, coding = load_digits(), Coding(run.code, theta=2.0**-8)
    train, test = (s.take(np.flatnonzero(s.y < CLASSES)) for s in (data.train, data.test))
    network = layered(64, (32,), CLASSES, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialise(network, np.random.default_rng(seed))
    params = {name: value + (0 if "->" in name else BIAS) for name, value in params.items()}
    plastic = make_plastic(network, params, PlasticityConfig(coding, run.rule(seed), LIMIT, 1e-3))
    rows = np.random.default_rng([seed, 0]).permutation(len(train))[:count]
    stimulus = training_stimulus(network, train.x[rows], one_hot(train.y[rows], CLASSES), coding)
    return Task(plastic, TrainingSamples(stimulus, np.full(count, RATE)), network, coding, test)


@dataclass(slots=True)
class Clock:
    """Notes when lessons are done."""

    began: float = field(default_factory=time.perf_counter)
    seen: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, more: int) -> None:
        """So many more lessons are done."""
        done = self.seen[-1][1] if self.seen else 0
        self.seen.append((time.perf_counter() - self.began, done + more))

    @property
    def pace(self) -> float:
        """Lessons in a second, from the first one that was seen done to the last."""
        (start, first), (end, last) = self.seen[0], self.seen[-1]
        return (last - first) / (end - start)


def learn(on: str, made: Task, watch: Clock | None = None) -> Learned:
    return load_learner(on).learn(
        made.plastic, made.lessons, synapses=NO_SYNAPSES, watch=watch or nobody
    )


def emulated(made: Task) -> tuple[float, float]:
    """Lessons in a second of the clock and of the processor on the emulator."""
    learn("emulator", made)
    clock, work = [], []
    for _ in range(5):
        began, busy = time.perf_counter(), time.process_time()
        learn("emulator", made)
        clock.append(time.perf_counter() - began)
        work.append(time.process_time() - busy)
    lessons = made.lessons.stimulus.samples
    return lessons / float(np.median(clock)), lessons / float(np.median(work))


def burnt() -> float:
    """Seconds of the processor that child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class Pace:
    """Images in a second on Lava and on the emulator, one by one and in batches."""

    title: str
    lava: float
    alone: float
    many: float | None
    """None where batches are refused."""
    work: float
    load: float

    @property
    def told(self) -> str:
        """A row of the table of speeds."""
        many = "-" if self.many is None else f"{self.many:.0f}"
        return (
            f"| {self.title} | {self.lava:.2f} | {self.alone:.0f} | {many} "
            f"| {self.alone / self.lava:.0f} | {self.work:.0f} |"
        )


def paced(run: Run, lessons: int) -> tuple[Pace, Learned]:
    """Learn on Lava, and before and after that on the emulator."""
    made, other, clock = task(run, 0, lessons), task(run, 0, EMULATED), Clock()
    before, busy = emulated(other), burnt()
    lava = learn("lava", made, clock)
    load, busy = os.getloadavg()[0], burnt() - busy
    alone, least = np.mean([before, emulated(other)], axis=0)
    many = None
    if not run.whole:
        rule = replace(other.plastic.rule, batch=64)
        many = emulated(replace(other, plastic=replace(other.plastic, rule=rule)))[0]
    return Pace(run.title, clock.pace, alone, many, least * busy / lessons, load), lava


@dataclass(frozen=True, slots=True)
class Row:
    """What a run came to."""

    run: Run
    steps: int
    before: float
    after: float
    seeds: tuple[float, ...]
    reference: float
    emulator: float
    pairs: float
    off: int
    events: int
    pace: Pace

    @property
    def learned(self) -> str:
        """A row of the first table."""
        spread = f"{np.mean(self.seeds):.1%} ({min(self.seeds):.1%} to {max(self.seeds):.1%})"
        return (
            f"| {self.run.title} | {self.steps} | {self.before:.1%} | {self.after:.1%} | {spread} |"
        )

    @property
    def equal(self) -> str:
        """A row of the second one."""
        apart = (self.reference, self.emulator, self.pairs)
        shown = " | ".join("0" if each == 0 else f"{each:.1e}" for each in apart)
        return f"| {self.run.title} | {shown} | {self.off} of {self.events:,} |"


def apart(a: Learned, b: Learned) -> float:
    """The largest difference of any two weights."""
    return max(float(np.abs(a.weights[n] - b.weights[n]).max()) for n in a.weights)


def counted(a: Learned, b: Learned) -> tuple[int, int]:
    """How many events count for one and not for the other, and how many there are."""
    pairs = [(asdict(a.counts[key]), asdict(b.counts[key])) for key in b.counts]
    off = sum(abs(x[name] - y[name]) for x, y in pairs for name in y)
    return off, sum(sum(y.values()) for _, y in pairs)


def measured(run: Run, lessons: int) -> Row:
    """Learn on Lava, on the reference and on the emulator."""
    made = task(run, 0, lessons)
    pace, lava = paced(run, lessons)
    reference, emulator = learn("reference", made), learn("emulator", made)
    pair = lava.weights["hidden->output"] - lava.weights["output->hidden"].T
    seeds = []
    for seed in SEEDS:
        other = task(run, seed, lessons)
        seeds.append(other.accuracy(learn("emulator", other).weights))
    return Row(
        run,
        made.plastic.rule.steps,
        made.accuracy(made.start),
        made.accuracy(lava.weights),
        tuple(seeds),
        apart(lava, reference),
        apart(lava, emulator),
        float(np.abs(pair).max()),
        *counted(lava, reference),
        pace,
    )


PAGE = """# Learning inside Lava

Made by `.venv/bin/python sims/learn/lava.py --lessons {lessons}`; do not edit.

A network 64-32-3 with plastic biases learns digits 0, 1 and 2 from {lessons} images, each seen
once, wholly inside one run of Lava 0.10.0: both phases, traces, tags and weights. Batch 1, centered
nudging, beta {beta}, learning rate {rate}, weights limited to {limit}; in fixed point weights have
nine bits of {unit}. The test set is asked in spikes, {steps} steps without a nudge.

| code | steps a lesson | test before | test after | emulator, {seeds} seeds: mean (range) |
|---|---|---|---|---|
{learned}

Largest difference of any weight after these lessons from the reference and the emulator (in fixed
point from their mode that follows Lava's engine), and of a weight from its mirror:

| code | Lava - reference | Lava - emulator | pair | events counted otherwise |
|---|---|---|---|---|
{equal}

<!-- speed -->
{speed}
<!-- end of speed -->

## What runs where

One process, the source, holds samples, targets and the clock; in every step it tells all
populations the beta of the phase, the third factor and their currents. A process for each
population runs the neurons and their trace, and tells trace and third factors to the synapses that
end there. The synapses are Lava's `LearningDense` with its `Loihi3FLearningRule`, a pair being two
of them; `s_in_bap` is not connected, since in fixed point a third factor below zero would be lost.

    real numbers   dt = u0*x1*y1*y2 - u0*t*y3        dw = u0*t*y1*y3
    fixed point    dt = 2^-7*u0*x1*y1*y2 - u0*t*y3   dw = 2^exponent*u0*t*y3

In a window y1 is the trace of the target and y2 is +1 or -1 (in fixed point up to 127). In the
commit y2 is 0 and y3 is 1 (32 in fixed point, which stands for one), and in real numbers y1 makes
room for the learning rate, which Lava's rules could only write as a power of two.

Everything that changes a weight is Lava's own code. Added to its `LearningDense` are the limit of
a weight in real numbers, at the place where the engine saturates, counting, and a file for the
weights in the end.

## What is not the same

- Real traces of spikes that fall below 2^-60 are zero in the reference; Lava's engine lets them
  fade on. That is what differs above; a weight may count as changed by less than 1e-18.
- Graded units take back in the commit all that they sent, because no rule can set x1 to zero.
  These messages reach nobody, and are not counted.
- In fixed point nothing is learned with code graded: the engine takes payloads for bytes without a
  sign, so that changes downwards are lost. It is refused, and so are whole weights that are rounded
  in another way than by the engine, flaws of synapses, and shares of the learning rate that are no
  whole number below 8 times a power of two.
"""

SPEED = """
Images in a second: Lava through {lessons} lessons, from its first to its last, without its start,
and the emulator through 150 just before and after that on the same machine (load {load:.0f} on
two cores, Lava's own processes included; both ran at a niceness of {nice}). The last column is the
ratio in seconds of the processor, which is in the emulator's favour: Lava's start is in it, and
what its processes burn while they wait for each other. Both ratios are those of batch 1; Lava's
engine has no other.
`.venv/bin/python sims/learn/lava.py --speed {lessons}` measures this table again.

| code | Lava | emulator, batch 1 | batch 64 | ratio | ratio of processor time |
|---|---|---|---|---|---|
{speed}
"""


def speeds(paces: list[Pace], lessons: int) -> str:
    load = np.mean([pace.load for pace in paces])
    told = "\n".join(pace.told for pace in paces)
    return SPEED.format(lessons=lessons, load=load, nice=os.nice(0), speed=told)


def page(rows: list[Row], lessons: int) -> str:
    return PAGE.format(
        lessons=lessons,
        beta=BETA,
        rate=RATE,
        limit=LIMIT,
        unit=LIMIT / 256,
        steps=ASKED[0].steps,
        seeds=len(SEEDS),
        learned="\n".join(row.learned for row in rows),
        equal="\n".join(row.equal for row in rows),
        speed=speeds([row.pace for row in rows], lessons),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path("docs/learning-lava.md"))
    parser.add_argument("--speed", type=int, metavar="N", help="only this, with so many lessons")
    options = parser.parse_args()
    if options.speed:
        paces = [paced(run, options.speed)[0] for run in RUNS]
        print(*(pace.told for pace in paces), sep="\n", flush=True)
        begin, end = "<!-- speed -->\n", "\n<!-- end of speed -->"
        there = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        made = begin + speeds(paces, options.speed) + end
        write_text(options.out, there.sub(lambda _: made, options.out.read_text()))
        return
    rows = []
    for run in RUNS:
        rows.append(measured(run, options.lessons))
        print(rows[-1].learned, rows[-1].equal, rows[-1].pace.told, sep="\n", flush=True)
    write_text(options.out, page(rows, options.lessons))


if __name__ == "__main__":
    main()
