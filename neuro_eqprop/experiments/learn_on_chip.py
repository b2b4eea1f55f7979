"""Carry out learning on a chip into a run folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.base import load
from neuro_eqprop.backends.learning import NO_SYNAPSES, Learned, Watch, load_learner
from neuro_eqprop.data import Dataset, Split, batches, one_hot
from neuro_eqprop.data import load as load_data
from neuro_eqprop.experiments import on_chip_config as lessons
from neuro_eqprop.experiments import run_folder
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.evaluate import equilibria
from neuro_eqprop.experiments.on_chip_config import RATES, OnChipConfig
from neuro_eqprop.experiments.rate_baseline import Direction, directions, learn_rates, rate_schedule
from neuro_eqprop.experiments.simulate import AnnounceCallback, no_announcement
from neuro_eqprop.experiments.synapse_trace import Look, Watched, plan_watching, watching
from neuro_eqprop.experiments.train import trim
from neuro_eqprop.io import checkpoint
from neuro_eqprop.io.atomic import write_text
from neuro_eqprop.model import Model
from neuro_eqprop.networks import Network, initialise
from neuro_eqprop.schedules import free_only, tail
from neuro_eqprop.spiking.make_plastic import (
    for_inference,
    make_plastic,
    parameters,
    training_stimulus,
    with_weights,
)
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples
from neuro_eqprop.traces import NOTHING, Counts, MemorySink

Told = Callable[[dict[str, Any]], None]
"""Told each epoch's line of metrics."""
Warned = Callable[[str], None]
"""Told what is doubtful, before the first lesson."""
ASK = {"rate": 64, "graded": 32}
"""Steps in which the test samples are asked, by code."""
PROBED = 10
"""Samples by which the direction of learning is measured before it starts."""
RATE_LEAST, GRADIENT_LEAST = 0.9, 0.8
"""Cosines below these are worth a warning."""


@dataclass(frozen=True, slots=True)
class Task:
    """All that learning needs, before its first epoch."""

    study: Study
    learning: OnChipConfig
    data: Dataset
    network: Network
    plastic: PlasticNetwork | None
    """None if rates learn."""

    @property
    def train(self) -> Split:
        """The samples to learn from."""
        held = self.data.train
        if self.learning.samples > len(held):
            raise ValueError(
                f"{self.study.dataset!r} has {len(held)} training samples, "
                f"not {self.learning.samples}"
            )
        return held.take(slice(0, self.learning.samples)) if self.learning.samples else held

    @property
    def epochs(self) -> int:
        """Over all tasks."""
        return self.study.epochs * self.learning.tasks

    def classes(self, epoch: int) -> Ints:
        """The classes that an epoch brings."""
        parts = np.array_split(np.arange(self.data.classes), self.learning.tasks)
        return np.asarray(parts[epoch // self.study.epochs])

    def order(self, epoch: int) -> Ints:
        """The samples of an epoch in their order, which is that of training with this seed."""
        rng = np.random.default_rng([self.study.seed, epoch])
        rows = np.concatenate(list(batches(self.train, self.study.batch, rng)))
        return np.asarray(rows[np.isin(self.train.y[rows], self.classes(epoch))])


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Who is told of a run while it goes on."""

    watch: Watch
    told: Told
    warned: Warned


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A trace that is wanted of a run: where, which synapses, in how many of its first lessons."""

    path: Path
    words: Sequence[str]
    lessons: int
    tell: AnnounceCallback = no_announcement


@dataclass(frozen=True, slots=True)
class LearningState:
    """What learning has come to: weights by projection, or parameters if rates learn."""

    epoch: int
    weights: Mapping[str, Array]
    lessons: int


def run_learning(
    study: Study,
    learning: OnChipConfig,
    out: Path,
    *,
    force: bool,
    resume: bool,
    audience: Callbacks,
    asked: TraceRequest | None = None,
) -> dict[str, Any]:
    """Learn and write the run; what `learn --json` shows. The first lessons go to a trace, live."""
    began = time.perf_counter()
    if learning.on != RATES:
        load_learner(learning.on)
    task = prepare(study, learning)
    traced = trace_of(task, asked, overwrite=force or resume) if asked else nullcontext(unseen)
    pupil = left_off(task, out) if resume else fresh(task)
    if learning.on != RATES:
        # Before the folder is claimed, so that a refusal leaves what it holds as it was.
        load_learner(learning.on).check(made(task), course(task, 0)[1])
    audience.watch(pupil.lessons)
    if not resume:
        run_folder.claim(out, force=force)
        write_text(out / run_folder.STUDY, lessons.write(study, learning))
    pointing = probe(task, pupil)
    for warning in warnings(task, pointing):
        audience.warned(warning)
    with traced as look:
        while pupil.epoch < task.epochs:
            pupil, line = learn_epoch(task, pupil, audience.watch)
            # In this order, so that after a kill the metrics are never behind the snapshot.
            run_folder.append(out / run_folder.METRICS, line)
            kept = Model(task.network, params(task, pupil), pupil.epoch)
            checkpoint.save(out / run_folder.RESUME, kept, optimizer_memory(task, pupil))
            look(pupil.weights, line)
            audience.told(line)
    checkpoint.save(out / run_folder.MODEL, Model(task.network, params(task, pupil), pupil.epoch))
    (out / run_folder.RESUME).unlink(missing_ok=True)
    seconds = time.perf_counter() - began
    return outcome(task, pupil, out=out, seconds=seconds, pointing=pointing)


TRAINING_ALONE = (
    "optimiser",
    "fall",
    "weight_decay",
    "shift",
    "validation",
    "beta_end",
    "points",
    "rule",
    "damping",
    "anderson",
    "order",
    "tolerance",
    "device",
)
"""Settings that learning in a simulator has no use for."""


def refuse_training_alone(study: Study) -> None:
    """Refuse settings that would be passed over in silence."""
    usual = Study(model=study.model)
    for key in TRAINING_ALONE:
        if getattr(study, key) not in (getattr(usual, key), lessons.DEFAULTS.get(key)):
            raise ValueError(
                f"learning in a simulator has no setting {key!r} (here {getattr(study, key)!r}): "
                f"leave it out, or train rates with `neuro-eqprop train`"
            )


def prepare(study: Study, learning: OnChipConfig) -> Task:
    """Read the data and make the network plastic."""
    refuse_training_alone(study)
    data = load_data(study.dataset)
    network = study.network(data)
    start = initialise(network, np.random.default_rng(study.seed))
    for layer in network.moving:
        start[layer.name] = start[layer.name] + learning.bias
    plastic = make_plastic(network, start, learning.sprout(study))
    task = Task(study, learning, data, network, plastic)
    if not len(task.train) or learning.tasks > data.classes:
        raise ValueError(f"{learning.tasks} tasks need as many classes, not {data.classes}")
    return task


def fresh(task: Task) -> LearningState:
    """Before the first epoch."""
    plastic = made(task)
    return LearningState(0, {name: plastic.projection(name).weight for name in plastic.learns}, 0)


def made(task: Task) -> PlasticNetwork:
    """The plastic network."""
    if task.plastic is None:
        raise ValueError("rates have no synapses")
    return task.plastic


def params(task: Task, pupil: LearningState) -> dict[str, Array]:
    """The parameters of the rate network."""
    return parameters(task.network, made(task), pupil.weights)


def optimizer_memory(task: Task, pupil: LearningState) -> dict[str, Array]:
    """The weights on the chip, for the resume file; untied feedback weights are transposed."""
    memory: dict[str, Array] = {}
    for connection in task.network.connections:
        memory[f"{connection.name}/weight"] = pupil.weights[connection.name]
        back = f"{connection.target}->{connection.source}"
        if not connection.loops and back in pupil.weights:
            memory[f"{connection.name}/back"] = pupil.weights[back].T
    for layer in task.network.moving:
        weight = pupil.weights[f"always->{layer.name}"]
        memory[f"{layer.name}/weight"] = weight.reshape(layer.shape)
    first = task.network.output.name
    memory[f"{first}/lessons"] = np.array(pupil.lessons)
    return memory


def left_off(task: Task, out: Path) -> LearningState:
    """Where the run in `out` was stopped: after an epoch, or within its first."""
    if not lessons.was_learned_on_chip(out):
        raise run_folder.RunError(f"{out} holds no run that learned on a chip; leave out --resume")
    if lessons.read(out / run_folder.STUDY) != (task.study, task.learning):
        raise run_folder.RunError(
            f"{out} was begun with other settings, and a run is resumed as it was begun; leave "
            f"them out, or learn anew with another --out"
        )
    left, start = out / run_folder.RESUME, fresh(task)
    if left.exists():
        kept, memory = checkpoint.load_training(left)
        if kept.network != task.network:
            raise run_folder.RunError(f"{left} holds another network than the study describes")
        start = recalled(task, kept.epochs, memory, left)
    elif (out / run_folder.MODEL).exists():
        raise run_folder.RunError(f"{out} has nothing to resume: its run is finished")
    trim(out / run_folder.METRICS, start.epoch)
    return start


def recalled(task: Task, epoch: int, memory: Mapping[str, Array], left: Path) -> LearningState:
    """The pupil that a file holds."""
    weights: dict[str, Array] = {}
    try:
        for connection in task.network.connections:
            weights[connection.name] = memory[f"{connection.name}/weight"]
            back = f"{connection.target}->{connection.source}"
            if not connection.loops and back in made(task).learns:
                weights[back] = memory[f"{connection.name}/back"].T
        for layer in task.network.moving:
            weights[f"always->{layer.name}"] = memory[f"{layer.name}/weight"].reshape(-1, 1)
        done = int(memory[f"{task.network.output.name}/lessons"].item())
    except KeyError as error:
        raise run_folder.RunError(f"{left} lacks {error}; learn anew with another --out") from error
    return LearningState(epoch, weights, done)


def rates_of(task: Task, epoch: int, lessons_: int) -> Array:
    """The learning rate of each lesson: it falls to zero along half a cosine, batch by batch."""
    batch = task.study.batch
    of_batch = np.arange(lessons_) // batch
    per_epoch = -(-lessons_ // batch)
    done = (epoch % task.study.epochs + of_batch / per_epoch) / task.study.epochs
    return np.asarray(task.study.learning_rate * 0.5 * (1 + np.cos(np.pi * done)))


def course(
    task: Task, epoch: int, *, most: int | None = None, first: int = 0
) -> tuple[Ints, TrainingSamples]:
    """The lessons of an epoch, or so many of them, and which samples they are."""
    rows = task.order(epoch)
    rates, rows = rates_of(task, epoch, len(rows))[:most], rows[:most]
    target = one_hot(task.train.y[rows], task.data.classes)
    stimulus = training_stimulus(task.network, task.train.x[rows], target, task.learning.coding)
    return rows, TrainingSamples(stimulus, rates, first)


def learn_epoch(
    task: Task, pupil: LearningState, watch: Watch
) -> tuple[LearningState, dict[str, Any]]:
    """One epoch, and its line of metrics."""
    began = time.perf_counter()
    rows, given = course(task, pupil.epoch, first=pupil.lessons)
    line: dict[str, Any] = {"epoch": pupil.epoch + 1}
    if task.learning.on == RATES:
        weights: Mapping[str, Array]
        weights, drive = rate_epoch(task, pupil, given, watch)
    else:
        plastic = with_weights(made(task), pupil.weights)
        learner = load_learner(task.learning.on)
        learned = learner.learn(plastic, given, synapses=NO_SYNAPSES, watch=watch)
        weights, drive = learned.weights, learned.drive
        line |= events(learned)
    seconds = time.perf_counter() - began
    after = LearningState(pupil.epoch + 1, weights, pupil.lessons + len(rows))
    line |= evaluate_epoch(task, after) | {"spectral": norms(task, params(task, after))}
    line["train_accuracy"] = float((drive.argmax(axis=1) == task.train.y[rows]).mean())
    return after, line | {"images_per_second": len(rows) / seconds, "seconds": seconds}


def rate_epoch(
    task: Task, pupil: LearningState, course: TrainingSamples, watch: Watch
) -> tuple[dict[str, Array], Array]:
    """An epoch of rates; their parameters in the places of synapses."""
    learned = learn_rates(
        task.network,
        params(task, pupil),
        course,
        schedule=rate_schedule(
            made(task).rule.schedule, free=task.study.free_steps, nudged=task.study.nudged_steps
        ),
        batch=task.study.batch,
        limit=task.learning.bound,
        watch=watch,
    )
    weights = {c.name: learned.params[c.name] for c in task.network.connections}
    for connection in task.network.connections:
        if task.network.feeds_back(connection):
            back = task.network.feedback(connection) * weights[connection.name].T
            weights[f"{connection.target}->{connection.source}"] = back
    for layer in task.network.moving:
        weights[f"always->{layer.name}"] = learned.params[layer.name].reshape(-1, 1)
    return weights, learned.drive


def unseen(_: Mapping[str, Array], __: Mapping[str, Any]) -> None:
    """Record nothing of an epoch."""


def trace_of(task: Task, asked: TraceRequest, *, overwrite: bool) -> AbstractContextManager[Look]:
    """The trace of a run, refused or told of before anything is begun."""
    if task.learning.on == RATES:
        raise ValueError("rates have no synapses to watch; use --on emulator")
    if asked.path.exists() and not overwrite:
        raise run_folder.RunError(f"{asked.path} exists already; name another file or use --force")
    rows, given = course(task, 0, most=asked.lessons)
    learner, plastic = load_learner(task.learning.on), made(task)
    watched = Watched(rows, task.train.y[rows], asked.words, task.study.seed, task.epochs)
    plan = plan_watching(watched, task.network, plastic, given, learner.name)
    asked.tell(plan)
    return watching(asked.path, plan, plastic, given, learner, overwrite=overwrite)


def events(learned: Learned) -> dict[str, Any]:
    """What an epoch cost, by phase."""
    phases: dict[str, Counts] = {}
    for (_, phase), counts in learned.counts.items():
        phases[phase] = phases.get(phase, Counts()) + counts
    total = learned.total
    return {
        "weight_updates": total.weight_updates,
        "tag_updates": total.tag_updates,
        "trace_updates": total.trace_updates,
        "spikes": {phase: counts.spikes for phase, counts in phases.items()},
        "synops": {phase: counts.synops for phase, counts in phases.items()},
        "updates": {
            phase: {
                "weights": counts.weight_updates,
                "tags": counts.tag_updates,
                "traces": counts.trace_updates,
            }
            for phase, counts in phases.items()
        },
        "saturated": dict(learned.saturated),
        "clipped": learned.clipped,
        "overflows": learned.overflows,
    }


def norms(task: Task, here: Mapping[str, Array]) -> dict[str, float]:
    """The spectral norm of the weights of each connection."""
    return {c.name: float(np.linalg.norm(here[c.name], 2)) for c in task.network.connections}


def evaluate_epoch(task: Task, pupil: LearningState) -> dict[str, Any]:
    """Accuracies on the test set: as spikes where it learned, and as rates."""
    test, here = task.data.test, params(task, pupil)
    answers = {"rate_test_accuracy": equilibria(task.network, here, test.x).drive}
    if task.learning.on != RATES:
        answers["test_accuracy"] = predict(task, pupil, test.x)
    else:
        answers["test_accuracy"] = answers["rate_test_accuracy"]
    right = {name: drive.argmax(axis=1) == test.y for name, drive in answers.items()}
    line: dict[str, Any] = {name: float(each.mean()) for name, each in right.items()}
    if task.learning.tasks > 1:
        parts = np.array_split(np.arange(task.data.classes), task.learning.tasks)
        line["task"] = (pupil.epoch - 1) // task.study.epochs
        line["by_task"] = [
            float(right["test_accuracy"][np.isin(test.y, part)].mean()) for part in parts
        ]
    return line


def predict(task: Task, pupil: LearningState, x: Array) -> Array:
    """The output's drive for samples that the network as it learned is asked, without a nudge."""
    network = for_inference(with_weights(made(task), pupil.weights))
    coding, emulator = task.learning.coding, load("emulator")
    steps = ASK[task.learning.code]
    schedule, drives = free_only(steps=steps, window=tail(steps, coding.tail)), []
    for start in range(0, len(x), 2000):
        part = x[start : start + 2000]
        nothing = np.zeros((len(part), task.data.classes))
        stimulus = replace(training_stimulus(task.network, part, nothing, coding), pull={})
        result = emulator.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())
        drives.append(result.drive[network.output][:, 0])
    return np.concatenate(drives)


def probe(task: Task, pupil: LearningState) -> dict[str, Direction]:
    """Where learning would go from here, by some samples; nothing if rates learn."""
    if task.learning.on == RATES or pupil.epoch >= task.epochs:
        return {}
    _, given = course(task, pupil.epoch, most=PROBED)
    plastic = with_weights(made(task), pupil.weights)
    here = parameters(task.network, plastic, pupil.weights)
    # Flaws and mirrors that learn apart are part of what is measured: rates have neither.
    return directions(task.network, plastic, here, given.stimulus, load_learner("emulator"))


def warnings(task: Task, pointing: Mapping[str, Direction]) -> list[str]:
    """What is doubtful about the settings, with what was measured."""
    found, beta, rule = [], task.study.beta, made(task).rule
    rates = [d.rate for d in pointing.values() if d.rate is not None]
    slopes = [d.gradient for d in pointing.values() if d.gradient is not None]
    steps = rule.schedule[-1].steps
    if rates and min(rates) < RATE_LEAST:
        found.append(
            f"phases of {steps} steps are short for beta {beta:g} and code "
            f"{task.learning.code}: the cosine of the update with that of rates is "
            f"{min(rates):.3f}; use more --steps, or code graded"
        )
    if slopes and min(slopes) < GRADIENT_LEAST:
        found.append(
            f"beta {beta:g} is too large for this network: the cosine of the update with minus the "
            f"gradient is {min(slopes):.3f}; use a smaller --beta"
        )
    if rule.unsettled and task.learning.code == "rate":
        found.append(
            f"one-sided nudging compares windows while traces of tau {rule.tau:g} still rise; "
            f"let the free phase settle {4 * rule.tau:g} steps, or use --nudging centered"
        )
    return found


def outcome(
    task: Task,
    pupil: LearningState,
    *,
    out: Path,
    seconds: float,
    pointing: Mapping[str, Direction],
) -> dict[str, Any]:
    """What became of learning, read from what it wrote."""
    lines = [json.loads(line) for line in (out / run_folder.METRICS).read_text().splitlines()]
    study, learning, last, rule = task.study, task.learning, lines[-1], made(task).rule
    model = checkpoint.load(out / run_folder.MODEL)
    settle = {phase.name: phase.steps for phase in rule.schedule}
    return {
        **run_folder.head(out, study, model),
        "train_accuracy": last["train_accuracy"],
        "test_accuracy": last["test_accuracy"],
        "seconds": seconds,
        "settle_steps": {"free": settle["free"], "nudged": rule.schedule[-1].steps},
        "spectral": norms(task, params(task, pupil)),
        "on": learning.on,
        "code": None if learning.on == RATES else learning.code,
        "bits": (9 if learning.engine else learning.bits) or None,
        "steps_per_phase": rule.schedule[-1].steps,
        "phases": settle | {"commit": 1},
        "batch": study.batch,
        "lessons": pupil.lessons,
        "weight_updates": sum(line.get("weight_updates", 0) for line in lines),
        "tag_updates": sum(line.get("tag_updates", 0) for line in lines),
        "trace_updates": sum(line.get("trace_updates", 0) for line in lines),
        "spikes": last.get("spikes", {}),
        "synops": last.get("synops", {}),
        "updates": last.get("updates", {}),
        "saturated": last.get("saturated", {}),
        "clipped": sum(line.get("clipped", 0) for line in lines),
        "overflows": sum(line.get("overflows", 0) for line in lines),
        "rate_test_accuracy": last["rate_test_accuracy"],
        "cosines": {n: {"rate": d.rate, "gradient": d.gradient} for n, d in pointing.items()},
        "images_per_second": float(np.median([line["images_per_second"] for line in lines])),
        "forgetting": forgetting(lines) if learning.tasks > 1 else None,
        "warnings": warnings(task, pointing),
    }


def forgetting(lines: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Of each task, its accuracy when it had just been learned, its best, and in the end."""
    found = []
    for task in range(max(line["task"] for line in lines) + 1):
        learned = [line["by_task"][task] for line in lines if line["task"] == task][-1]
        after = [line["by_task"][task] for line in lines]
        found.append({"learned": learned, "best": max(after), "end": after[-1]})
    return found
