"""Fill the tables of docs/learning.md: what learning on the chip reaches, with the commands.

Run it with `.venv/bin/python sims/learn/tables.py [TABLE ...]`; without names it makes all of
them (about 40 minutes on one core; the rows on MNIST need NEURO_EQPROP_DATA). Every run is kept in
`runs/tables`: interrupted, it goes on from there, and what is done is not done again unless its
folder is removed. With `--kept` nothing is run: tables show the rows and seeds that are there.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.activations import HARD_SIGMOID
from neuro_eqprop.architectures import layered
from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.learning import NO_SYNAPSES, nobody
from neuro_eqprop.backends.registry import load_learner
from neuro_eqprop.cli import parser
from neuro_eqprop.cli.learn import settings
from neuro_eqprop.data import Split, load, one_hot
from neuro_eqprop.experiments.learn_on_chip import learn_on_chip, learning_result
from neuro_eqprop.experiments.rate_baseline import Direction, directions
from neuro_eqprop.experiments.run_folder import MODEL, STUDY
from neuro_eqprop.initialise import initialise
from neuro_eqprop.io.atomic import write_text
from neuro_eqprop.networks import Network
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    make_plastic,
    parameters,
    training_stimulus,
    with_weights,
)
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import IntegerArithmetic, LearningRule, TrainingSamples

PAGE = Path("docs/learning.md")
KEPT = Path("runs/tables")
SEEDS = (0, 1, 2)
GRADED, SPIKES = "--code graded", "--code rate"


class MissingError(Exception):
    """A run that is not there, when none is to be made."""


def learned(options: str, seed: int) -> dict[str, Any]:
    """What `neuro-eqprop learn` with these options tells."""
    words = ["learn", *options.split(), "--seed", str(seed), "--out", "RUN"]
    place = KEPT / re.sub(r"[^a-z0-9.]+", "-", " ".join(words[1:-2])).strip("-")
    done = place / "outcome.json"
    if done.exists():
        return dict(json.loads(done.read_text()))
    if "--kept" in sys.argv:
        raise MissingError(place.name)
    if (place / MODEL).exists():
        shutil.rmtree(place)
    given = settings(parser(words).parse_args(words))
    network, data = given.pop("model", "layered"), given.pop("dataset", "digits")
    resume = (place / STUDY).exists()
    told = learning_result(learn_on_chip(network, data, out=place, resume=resume, **given))
    write_text(done, json.dumps(told))
    return told


def three_classes() -> tuple[Network, dict[str, Array], Split]:
    train = load("digits").train
    net = layered(64, (32,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialise(net, np.random.default_rng(0))
    params = {n: v + (0.0 if "->" in n else 0.3) for n, v in params.items()}
    return net, params, train.take(np.flatnonzero(train.y < 3)[:60])


def mnist() -> tuple[Network, dict[str, Array], Split]:
    """A network that has learned from 4000 images, and images that it has not seen."""
    train = load("mnist").train
    net = layered(784, (256,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialise(net, np.random.default_rng(0))
    coding = Coding(Code.GRADED, theta=2.0**-8)
    schedule = PhaseLengths(16, 12, 4).schedule(beta=0.5, centered=True)
    plastic = make_plastic(
        net, params, PlasticityConfig(coding, LearningRule(schedule, 8.0), 4.0, 1e-3)
    )
    seen = train.take(slice(0, 4000))
    stimulus = training_stimulus(net, seen.x, one_hot(seen.y, 10), coding)
    lessons = TrainingSamples(stimulus, np.full(4000, 0.05))
    found = load_learner("emulator").learn(plastic, lessons, synapses=NO_SYNAPSES, watch=nobody)
    grown = with_weights(plastic, found.weights)
    return net, parameters(net, grown, found.weights), train.take(slice(50_000, 50_040))


def pointed(
    task: tuple[Network, dict[str, Array], Split],
    coding: Coding,
    schedule: Schedule,
    whole: IntegerArithmetic | None = None,
) -> dict[str, Direction]:
    net, params, split = task
    limit = 2.0 if whole else 8.0
    plastic = make_plastic(
        net,
        params,
        PlasticityConfig(coding, LearningRule(schedule, 8.0, numbers=whole), limit, 1e-3),
    )
    stimulus = training_stimulus(net, split.x, one_hot(split.y, net.output.size), coding)
    weights = {name: plastic.projection(name).weight for name in plastic.learns}
    here = parameters(net, plastic, weights)
    return directions(net, plastic, here, stimulus, load_learner("emulator"))


def cosine_row(name: str, found: dict[str, Direction], what: str) -> str:
    def told(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    first, second = found["input->hidden"], found["hidden->output"]
    return (
        f"| {name} | {what} | {told(first.rate)} | {told(second.rate)} | "
        f"{told(found['hidden'].rate)} | {told(found['output'].rate)} | "
        f"{told(first.gradient)} | {told(second.gradient)} |"
    )


def phases(free: int, settle: int, window: int, beta: float, centered: bool = True) -> Schedule:
    return PhaseLengths(free, settle, window).schedule(beta=beta, centered=centered)


def cosines() -> list[str]:
    rows = [
        "| network | code, phases | W1, rates | W2, rates | b1, rates | b2, rates "
        "| W1, gradient | W2, gradient |",
        "|---|---|---|---|---|---|---|---|",
    ]
    task = three_classes()
    for beta in (0.2, 0.5):
        for power in (6, 8):
            coding = Coding(Code.GRADED, theta=2.0**-power)
            found = pointed(task, coding, phases(16, 12, 4, beta))
            what = f"graded, theta 1/{2**power}, 16 steps, beta {beta}"
            rows.append(cosine_row("64-32-3", found, what))
        for n in (16, 32, 64):
            found = pointed(task, Coding(Code.RATE), phases(n, n, n, beta))
            rows.append(cosine_row("64-32-3", found, f"rate, {n}/{n}/{n}, beta {beta}"))
    found = pointed(task, Coding(Code.RATE), phases(64, 64, 64, 0.5, centered=False))
    rows.append(cosine_row("64-32-3", found, "rate, one-sided 64/64/64, beta 0.5"))
    for code, each in ((Code.GRADED, (16, 12, 4)), (Code.RATE, (32, 32, 32))):
        found = pointed(task, Coding(code, theta=2.0**-8), phases(*each, 0.5), IntegerArithmetic(0))
        what = f"{code.name}, {'/'.join(map(str, each))}, beta 0.5, tag of 8 bits"
        rows.append(cosine_row("64-32-3", found, what))
    task = mnist()
    found = pointed(task, Coding(Code.GRADED, theta=2.0**-8), phases(32, 28, 4, 0.5))
    rows.append(cosine_row("784-256-10", found, "graded, 32 steps, beta 0.5"))
    for n in (32, 128):
        found = pointed(task, Coding(Code.RATE), phases(n, n, n, 0.5))
        what = f"rate, {n}/{n}/{n} ({2 * n} steps a nudged phase), beta 0.5"
        rows.append(cosine_row("784-256-10", found, what))
    return rows


def of_seeds(options: str, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """What all seeds tell, up to the first that is missing."""
    told: list[dict[str, Any]] = []
    with suppress(MissingError):
        for seed in seeds:
            told.append(learned(options, seed))  # noqa: PERF401 - what came before one is kept
    return told


def compared(options: dict[str, str]) -> list[str]:
    """A row for each, with the accuracies of all seeds.

    The first is what others are held to, by the seeds that they have.
    """
    rows = [
        "| learned with | batch | test %, seeds 0, 1, ... | mean | difference "
        "| command (with `--out RUN --seed N`) |",
        "|---|---|---|---|---|---|",
    ]
    base: list[float] = []
    for name, words in options.items():
        told = of_seeds(words, SEEDS)
        if not told:
            rows.append(f"| {name} | - | not run yet | - | - | `neuro-eqprop learn {words}` |")
            continue
        found = [100 * each["test_accuracy"] for each in told]
        base = base or found
        mean = float(np.mean(found))
        apart = mean - float(np.mean(base[: len(found)]))
        each = " ".join(f"{accuracy:.2f}" for accuracy in found)
        rows.append(
            f"| {name} | {told[0]['batch']} | {each} | {mean:.2f} | {apart:+.2f} | "
            f"`neuro-eqprop learn {words}` |"
        )
        print(rows[-1], flush=True)
    return rows


DIGITS = "--epochs 10 --batch 8 --learning-rate 0.3"
ALONE = "--epochs 10 --learning-rate 0.05"


def digits() -> list[str]:
    return compared(
        {
            "rates": f"{DIGITS} --on rate",
            "graded": f"{DIGITS} {GRADED}",
            "graded, 8 bits, 7-bit traces": f"{DIGITS} {GRADED} --bits 8",
            "graded, a commit for each sample": f"{ALONE} {GRADED}",
            "spikes": f"{DIGITS} {SPIKES}",
            "spikes, 8 bits, 7-bit traces": f"{DIGITS} {SPIKES} --bits 8",
        }
    )


TEN = "--dataset mnist --hidden 256 --samples 10000 --epochs 6 --batch 25 --learning-rate 0.2"


def ten_thousand() -> list[str]:
    return compared(
        {
            "rates": f"{TEN} --on rate --set free_steps=8 --set nudged_steps=4",
            "graded": f"{TEN} {GRADED}",
            "graded, 8 bits, 7-bit traces": f"{TEN} {GRADED} --bits 8 --limit 0.5",
            "spikes": f"{TEN} {SPIKES}",
            "spikes, 256 steps a nudged phase": f"{TEN} {SPIKES} --steps 256",
        }
    )


def full() -> list[str]:
    words = f"--dataset mnist --hidden 256 --epochs 3 --learning-rate 0.03 {GRADED}"
    return compared({"graded": words})


def robust() -> list[str]:
    rows = ["| nonideality | graded, test % | spikes, test % | options |", "|---|---|---|---|"]
    flaws = {"none": ""}
    flaws |= {f"weight noise {n}": f"--weight-noise {n}" for n in (0.1, 0.3, 0.5)}
    flaws |= {f"{round(100 * n)} % dead neurons": f"--dead {n}" for n in (0.1, 0.3)}
    flaws |= {f"threshold mismatch {n}": f"--mismatch {n}" for n in (0.05, 0.1, 0.2)}
    flaws["8 bits"] = "--bits 8"
    flaws["8 bits, both directions rounded independently"] = "--bits 8 --asymmetric"
    for name, words in flaws.items():
        told = []
        for code, epochs in ((GRADED, 8), (SPIKES, 4)):
            line = f"--epochs {epochs} --learning-rate 0.05 {code} {words}"
            told.append([each["test_accuracy"] for each in of_seeds(line, SEEDS[:2])])
        graded, spikes = (
            f"{100 * np.mean(each):.2f}" if len(each) == len(SEEDS[:2]) else "not run yet"
            for each in told
        )
        rows.append(f"| {name} | {graded} | {spikes} | {f'`{words}`' if words else '-'} |")
        print(rows[-1], flush=True)
    return rows


def forgetting() -> list[str]:
    told = learned(f"--tasks 5 --epochs 3 --learning-rate 0.05 {GRADED}", 0)
    rows = ["| classes | just after learning, % | at the end, % |", "|---|---|---|"]
    for k, task in enumerate(told["forgetting"]):
        name = f"{2 * k} and {2 * k + 1}"
        rows.append(f"| {name} | {100 * task['learned']:.1f} | {100 * task['end']:.1f} |")
    return rows


def speed() -> list[str]:
    rows = ["| data, code, phases | batch 1 | batch 64 |", "|---|---|---|"]
    for name, hidden in (("digits", 128), ("mnist", 256)):
        split = load(name).train.take(slice(0, 600))
        net = layered(
            split.x.shape[1], (hidden,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID
        )
        params = initialise(net, np.random.default_rng(0))
        for code, each in ((Code.GRADED, (16, 12, 4)), (Code.RATE, (32, 32, 32))):
            coding, found = Coding(code, theta=2.0**-8), []
            stimulus = training_stimulus(net, split.x, one_hot(split.y, 10), coding)
            for batch in (1, 64):
                rule = LearningRule(phases(*each, 0.5), 8.0, batch=batch)
                plastic = make_plastic(net, params, PlasticityConfig(coding, rule, 4.0, 1e-3))
                learner = load_learner("emulator")
                for lessons in (2, 600):
                    began = time.process_time()
                    part = TrainingSamples(stimulus.take(0, lessons), np.full(lessons, 0.02))
                    learner.learn(plastic, part, synapses=NO_SYNAPSES, watch=nobody)
                found.append(600 / (time.process_time() - began))
            told = f"{name}, {code.name}, {'/'.join(map(str, each))}"
            rows.append(f"| {told} | {found[0]:.0f} | {found[1]:.0f} |")
    return rows


TABLES = {
    "cosines": cosines,
    "digits": digits,
    "ten_thousand": ten_thousand,
    "full": full,
    "robust": robust,
    "forgetting": forgetting,
    "speed": speed,
}


def fill(name: str, rows: list[str]) -> None:
    """Put a table in its place on the page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text()
    made = f"{begin}\n\n" + "\n".join(rows) + f"\n\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{PAGE} has no place for {name!r}")
    write_text(PAGE, pattern.sub(lambda _: made, text))


def main() -> None:
    for name in [word for word in sys.argv[1:] if word != "--kept"] or TABLES:
        fill(name, TABLES[name]())
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main()
