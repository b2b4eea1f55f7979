"""Write docs/results/learning-lava.md: digits of three classes, learned inside Lava.

Run it with `.venv/bin/python sims/learn/lava.py` (about ten minutes on one core). `--speed N`
measures only the table of speeds again, with N samples on Lava.
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

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Split, load_digits, one_hot
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.files.write import write_text
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.simulators.learning import Learned, no_progress
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.registry import load_backend, load_learner
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

CLASSES, BETA, RATE, LIMIT, BIAS, TAU = 3, 0.5, 0.05, 2.0, 0.3, 8.0
TEST_PHASE = free_only(steps=64, window=32)
SEEDS = range(5)
EMULATED = 150
"""Samples on which the speed of the emulator is measured."""


@dataclass(frozen=True, slots=True)
class Run:
    """A code with the steps of its phases."""

    title: str
    code: Code
    free: int
    settle: int
    window: int
    fixed_point: bool = False

    def rule(self, seed: int) -> LearningRule:
        """The learning rule."""
        phases = PhaseLengths(self.free, self.settle, self.window).schedule(
            beta=BETA, centered=True
        )
        made = engine_for(RATE, gap=2 * BETA, window=self.window, scale=LIMIT / 256, seed=seed)
        return LearningRule(phases, TAU, numbers=made if self.fixed_point else None)


RUNS = (
    Run("rate, floating point", Code.RATE, 16, 16, 16),
    Run("graded, floating point", Code.GRADED, 16, 12, 4),
    Run("rate, fixed point", Code.RATE, 16, 16, 16, fixed_point=True),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A plastic network before learning, its training samples and its test samples."""

    plastic: PlasticNetwork
    samples: TrainingSamples
    network: Network
    coding: Coding
    test: Split

    def accuracy(self, weights: Mapping[str, Array]) -> float:
        """The test accuracy with these weights, in a free phase on the emulator."""
        no_target = np.zeros((len(self.test), CLASSES))
        stimulus = training_stimulus(self.network, self.test.x, no_target, self.coding)
        network = for_inference(with_weights(self.plastic, weights))
        result = load_backend("emulator").run(
            network, replace(stimulus, pull={}), TEST_PHASE, record=NOTHING, sink=MemorySink()
        )
        return float((result.drive[network.output][:, 0].argmax(axis=1) == self.test.y).mean())

    @property
    def start(self) -> dict[str, Array]:
        """The weights before learning."""
        return {name: self.plastic.projection(name).weight for name in self.plastic.learns}


def make_task(run: Run, seed: int, count: int) -> Task:
    """Digits 0, 1 and 2 and a network 64-32-3."""
    data, coding = load_digits(), Coding(run.code, theta=2.0**-8)
    train, test = (s.take(np.flatnonzero(s.y < CLASSES)) for s in (data.train, data.test))
    network = layered(64, (32,), CLASSES, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(network, np.random.default_rng(seed))
    params = {name: value + (0 if "->" in name else BIAS) for name, value in params.items()}
    plastic = make_plastic(network, params, PlasticityConfig(coding, run.rule(seed), LIMIT, 1e-3))
    rows = np.random.default_rng([seed, 0]).permutation(len(train))[:count]
    stimulus = training_stimulus(network, train.x[rows], one_hot(train.y[rows], CLASSES), coding)
    return Task(plastic, TrainingSamples(stimulus, np.full(count, RATE)), network, coding, test)


@dataclass(slots=True)
class Clock:
    """A progress callback that measures samples per second."""

    began: float = field(default_factory=time.perf_counter)
    done: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, more: int) -> None:
        """Record that `more` samples are done."""
        before = self.done[-1][1] if self.done else 0
        self.done.append((time.perf_counter() - self.began, before + more))

    @property
    def speed(self) -> float:
        """Samples per second, from the first call to the last."""
        (start, first), (end, last) = self.done[0], self.done[-1]
        return (last - first) / (end - start)


def learn(on: str, task: Task, watch: Clock | None = None) -> Learned:
    return load_learner(on).learn(task.plastic, task.samples, progress=watch or no_progress)


def emulator_speed(task: Task) -> tuple[float, float]:
    """Samples per second of wall-clock time and of CPU time on the emulator."""
    learn("emulator", task)
    clock, cpu = [], []
    for _ in range(5):
        began, cpu_began = time.perf_counter(), time.process_time()
        learn("emulator", task)
        clock.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    samples = task.samples.stimulus.samples
    return samples / float(np.median(clock)), samples / float(np.median(cpu))


def child_cpu_seconds() -> float:
    """CPU time of child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class Speed:
    """Images per second on Lava and on the emulator."""

    title: str
    lava: float
    single: float
    """The emulator with batch 1."""
    batched: float | None
    """The emulator with batch 64; None where batches are refused."""
    cpu_ratio: float
    load: float

    @property
    def row(self) -> str:
        """A row of the table of speeds."""
        batched = "-" if self.batched is None else f"{self.batched:.0f}"
        return (
            f"| {self.title} | {self.lava:.2f} | {self.single:.0f} | {batched} "
            f"| {self.single / self.lava:.0f} | {self.cpu_ratio:.0f} |"
        )


def measure_speed(run: Run, samples: int) -> tuple[Speed, Learned]:
    """Learn on Lava, and before and after that on the emulator."""
    task, other, clock = make_task(run, 0, samples), make_task(run, 0, EMULATED), Clock()
    before, cpu = emulator_speed(other), child_cpu_seconds()
    lava = learn("lava", task, clock)
    load, cpu = os.getloadavg()[0], child_cpu_seconds() - cpu
    single, cpu_single = np.mean([before, emulator_speed(other)], axis=0)
    batched = None
    if not run.fixed_point:
        rule = replace(other.plastic.rule, batch=64)
        batched = emulator_speed(replace(other, plastic=replace(other.plastic, rule=rule)))[0]
    ratio = cpu_single * cpu / samples
    return Speed(run.title, clock.speed, single, batched, ratio, load), lava


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a run."""

    run: Run
    steps: int
    before: float
    after: float
    seeds: tuple[float, ...]
    reference: float
    emulator: float
    pairs: float
    differing: int
    events: int
    speed: Speed

    @property
    def accuracy_row(self) -> str:
        """A row of the table of accuracies."""
        spread = f"{np.mean(self.seeds):.1%} ({min(self.seeds):.1%} to {max(self.seeds):.1%})"
        return (
            f"| {self.run.title} | {self.steps} | {self.before:.1%} | {self.after:.1%} | {spread} |"
        )

    @property
    def agreement_row(self) -> str:
        """A row of the table of differences."""
        differences = (self.reference, self.emulator, self.pairs)
        shown = " | ".join("0" if each == 0 else f"{each:.1e}" for each in differences)
        return f"| {self.run.title} | {shown} | {self.differing} of {self.events:,} |"


def largest_difference(a: Learned, b: Learned) -> float:
    """The largest difference of any weight."""
    return max(float(np.abs(a.weights[n] - b.weights[n]).max()) for n in a.weights)


def count_differences(a: Learned, b: Learned) -> tuple[int, int]:
    """The number of events counted by only one of the two, and of all events."""
    pairs = [(asdict(a.counts[key]), asdict(b.counts[key])) for key in b.counts]
    differing = sum(abs(x[name] - y[name]) for x, y in pairs for name in y)
    return differing, sum(sum(y.values()) for _, y in pairs)


def measure(run: Run, samples: int) -> Row:
    """Learn on Lava, on the reference and on the emulator."""
    task = make_task(run, 0, samples)
    speed, lava = measure_speed(run, samples)
    reference, emulator = learn("reference", task), learn("emulator", task)
    pair = lava.weights["hidden->output"] - lava.weights["output->hidden"].T
    seeds = []
    for seed in SEEDS:
        other = make_task(run, seed, samples)
        seeds.append(other.accuracy(learn("emulator", other).weights))
    return Row(
        run,
        task.plastic.rule.steps,
        task.accuracy(task.start),
        task.accuracy(lava.weights),
        tuple(seeds),
        largest_difference(lava, reference),
        largest_difference(lava, emulator),
        float(np.abs(pair).max()),
        *count_differences(lava, reference),
        speed,
    )


PAGE = """# Learning inside Lava

How well a network learns inside Lava, whether its weights equal those of the other simulators, and
how fast it is. Written by `.venv/bin/python sims/learn/lava.py --samples {samples}`; do not edit.

A network 64-32-3 with plastic biases learns digits 0, 1 and 2 from {samples} images, each shown
once, inside one run of Lava 0.10.0: phases, traces, tags and weights. Batch 1, centered nudging,
beta {beta}, learning rate {rate}, weights clipped at {limit}; in fixed point weights have nine bits
with a scale of {unit}. Test images are classified in spikes, in a free phase of {steps} steps.

| code | steps per sample | test before | test after | emulator, {seeds} seeds: mean (range) |
|---|---|---|---|---|
{accuracy}

Largest difference of any weight after learning from the reference and from the emulator (in fixed
point from their mode that follows Lava's engine), and of a weight from its feedback weight:

| code | Lava - reference | Lava - emulator | pair | events counted differently |
|---|---|---|---|---|
{agreement}

<!-- speed -->
{speed}
<!-- end of speed -->

## Processes

One process, the source, holds samples, targets and the clock. In every step it sends to all
populations the beta of the phase, the third factor and their input currents. One process per
population runs the neurons and their traces, and sends traces and third factors to the synapses
that end there. The synapses are Lava's `LearningDense` with its `Loihi3FLearningRule`, one for each
direction of a connection. `s_in_bap` is not connected: in fixed point a negative third factor would
be lost.

    floating point   dt = u0*x1*y1*y2 - u0*t*y3        dw = u0*t*y1*y3
    fixed point      dt = 2^-7*u0*x1*y1*y2 - u0*t*y3   dw = 2^exponent*u0*t*y3

In a window y1 is the trace of the target and y2 is +1 or -1 (in fixed point up to 127). In the
commit y2 is 0 and y3 is 1 (32 in fixed point, which represents one). In floating point y1 then
carries the learning rate, which Lava's rules can only write as a power of two.

All code that changes a weight is Lava's. Added to its `LearningDense` are the clipping of weights
in floating point, at the place where the engine saturates them, event counts, and a file with the
final weights.

## Differences from the reference

- Traces of spikes below 2^-60 are zero in the reference; Lava's engine lets them decay further.
  This causes the differences above; a weight may count as changed by less than 1e-18.
- Graded units send the negative of their sum in the commit, because no rule can set x1 to zero.
  These messages have no effect and are not counted.
- Code graded is refused in fixed point: the engine reads payloads as unsigned bytes, so negative
  changes are lost. Also refused are integer weights rounded in another way than the engine's,
  nonidealities of synapses, and learning rates of a layer that are not an integer below 8 times a
  power of two.
"""

SPEED = """
Images per second: Lava over {samples} samples, from the first to the last, without its start-up,
and the emulator over 150 just before and after that on the same machine (load {load:.0f} on two
cores, Lava's processes included; niceness {nice}). The last column is the ratio of CPU time, which
favours the emulator: it includes Lava's start-up and the time in which its processes poll each
other. Both ratios are for batch 1, the only one that Lava's engine has.
`.venv/bin/python sims/learn/lava.py --speed {samples}` measures this table again.

| code | Lava | emulator, batch 1 | batch 64 | ratio | ratio of CPU time |
|---|---|---|---|---|---|
{speed}
"""


def speed_section(speeds: list[Speed], samples: int) -> str:
    load = np.mean([speed.load for speed in speeds])
    rows = "\n".join(speed.row for speed in speeds)
    return SPEED.format(samples=samples, load=load, nice=os.nice(0), speed=rows)


def page(rows: list[Row], samples: int) -> str:
    return PAGE.format(
        samples=samples,
        beta=BETA,
        rate=RATE,
        limit=LIMIT,
        unit=LIMIT / 256,
        steps=TEST_PHASE[0].steps,
        seeds=len(SEEDS),
        accuracy="\n".join(row.accuracy_row for row in rows),
        agreement="\n".join(row.agreement_row for row in rows),
        speed=speed_section([row.speed for row in rows], samples),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path("docs/results/learning-lava.md"))
    parser.add_argument("--speed", type=int, metavar="N", help="only the speeds, with N samples")
    options = parser.parse_args()
    if options.speed:
        speeds = [measure_speed(run, options.speed)[0] for run in RUNS]
        print(*(speed.row for speed in speeds), sep="\n", flush=True)
        begin, end = "<!-- speed -->\n", "\n<!-- end of speed -->"
        section = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text = begin + speed_section(speeds, options.speed) + end
        write_text(options.out, section.sub(lambda _: text, options.out.read_text()))
        return
    rows = []
    for run in RUNS:
        row = measure(run, options.samples)
        print(row.accuracy_row, row.agreement_row, row.speed.row, sep="\n", flush=True)
        rows.append(row)
    write_text(options.out, page(rows, options.samples))


if __name__ == "__main__":
    main()
