"""Fill the tables of docs/results/learning.md: learning on a chip, with the commands.

Run it with `.venv/bin/python sims/learn/tables.py [TABLE ...]`; without names it fills all tables
(about two hours on one core; MNIST needs NEURO_EQPROP_DATA). Runs are stored in `runs/tables`, so
that an interrupted script continues from there, and their results in `sims/learn/measured`: what
has a result is not run again. With `--kept` nothing is run: the tables show the stored rows.
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

from neuro_eqprop.api.learn_on_chip import learn_on_chip
from neuro_eqprop.api.run import open_run
from neuro_eqprop.cli.learn import settings
from neuro_eqprop.cli.program import parser
from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.data import Split, load_data, one_hot
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.write import write_text
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.learn_on_chip.result import learning_result
from neuro_eqprop.runs.rate_baseline import Direction, directions, exact_gradient
from neuro_eqprop.runs.run_folder import MODEL, STUDY
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    make_plastic,
    parameters,
    training_stimulus,
)
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    TrainingSamples,
    with_weights,
)
from neuro_eqprop.training.rules.base import Batch

PAGE = Path("docs/results/learning.md")
RUNS = Path("runs/tables")
MEASURED = Path(__file__).parent / "measured"
SEEDS = (0, 1, 2)
GRADED, SPIKES = "--code graded", "--code rate"


class MissingError(Exception):
    """A run is not stored, and `--kept` runs none."""


def folder_of(options: str, seed: int) -> Path:
    """The folder of a run."""
    return RUNS / re.sub(r"[^a-z0-9.]+", "-", f"{options} --seed {seed}").strip("-")


def learned(options: str, seed: int, *, with_run: bool = False) -> dict[str, Any]:
    """The JSON result of `neuro-eqprop learn` with these options, and its run folder if asked."""
    arguments = ["learn", *options.split(), "--seed", str(seed), "--out", "RUN"]
    place = folder_of(options, seed)
    done = MEASURED / f"{place.name}.json"
    if done.exists() and (not with_run or (place / MODEL).exists()):
        return dict(json.loads(done.read_text()))
    if "--kept" in sys.argv:
        raise MissingError(place.name)
    if (place / MODEL).exists():
        shutil.rmtree(place)
    given = settings(parser(arguments).parse_args(arguments))
    network, data = given.pop("model", "layered"), given.pop("dataset", "digits")
    resume = (place / STUDY).exists()
    result = learning_result(learn_on_chip(network, data, out=place, resume=resume, **given))
    MEASURED.mkdir(exist_ok=True)
    write_text(done, json.dumps(result, indent=1) + "\n")
    return result


def three_classes() -> tuple[Network, dict[str, Array], Split]:
    train = load_data("digits").train
    net = layered(64, (32,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(net, np.random.default_rng(0))
    params = {n: v + (0.0 if "->" in n else 0.3) for n, v in params.items()}
    return net, params, train.take(np.flatnonzero(train.y < 3)[:60])


def mnist() -> tuple[Network, dict[str, Array], Split]:
    """A network that learned 4000 images, and images that it has not seen."""
    train = load_data("mnist").train
    net = layered(784, (256,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(net, np.random.default_rng(0))
    coding = Coding(Code.GRADED, theta=2.0**-8)
    schedule = PhaseLengths(16, 12, 4).schedule(beta=0.5, centered=True)
    plastic = make_plastic(
        net, params, PlasticityConfig(coding, LearningRule(schedule, 8.0), 4.0, 1e-3)
    )
    first = train.take(slice(0, 4000))
    stimulus = training_stimulus(net, first.x, one_hot(first.y, 10), coding)
    samples = TrainingSamples(stimulus, np.full(4000, 0.05))
    found = load_learner("emulator").learn(plastic, samples)
    learned_network = with_weights(plastic, found.weights)
    return net, parameters(net, learned_network, found.weights), train.take(slice(50_000, 50_040))


def measure(
    task: tuple[Network, dict[str, Array], Split],
    coding: Coding,
    schedule: Schedule,
    arithmetic: IntegerArithmetic | None = None,
) -> dict[str, Direction]:
    net, params, split = task
    limit = 2.0 if arithmetic else 8.0
    rule = LearningRule(schedule, 8.0, numbers=arithmetic)
    plastic = make_plastic(net, params, PlasticityConfig(coding, rule, limit, 1e-3))
    target = one_hot(split.y, net.output.size)
    stimulus = training_stimulus(net, split.x, target, coding, rule.input_levels)
    weights = {name: plastic.projection(name).weight for name in plastic.learns}
    current = parameters(net, plastic, weights)
    return directions(net, plastic, current, stimulus, load_learner("emulator"))


def cosine_row(name: str, found: dict[str, Direction], what: str) -> str:
    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    first, second = found["input->hidden"], found["hidden->output"]
    return (
        f"| {name} | {what} | {text(first.rate)} | {text(second.rate)} | "
        f"{text(found['hidden'].rate)} | {text(found['output'].rate)} | "
        f"{text(first.gradient)} | {text(second.gradient)} |"
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
            found = measure(task, coding, phases(16, 12, 4, beta))
            what = f"graded, theta 1/{2**power}, 16 steps, beta {beta}"
            rows.append(cosine_row("64-32-3", found, what))
        for n in (16, 32, 64):
            found = measure(task, Coding(Code.RATE), phases(n, n, n, beta))
            rows.append(cosine_row("64-32-3", found, f"rate, {n}/{n}/{n}, beta {beta}"))
    found = measure(task, Coding(Code.RATE), phases(64, 64, 64, 0.5, centered=False))
    rows.append(cosine_row("64-32-3", found, "rate, one-sided 64/64/64, beta 0.5"))
    for code, each in ((Code.GRADED, (16, 12, 4)), (Code.RATE, (32, 32, 32))):
        found = measure(task, Coding(code, theta=2.0**-8), phases(*each, 0.5), IntegerArithmetic(0))
        what = f"{code.name}, {'/'.join(map(str, each))}, beta 0.5, tag of 8 bits"
        rows.append(cosine_row("64-32-3", found, what))
    task = mnist()
    found = measure(task, Coding(Code.GRADED, theta=2.0**-8), phases(32, 28, 4, 0.5))
    rows.append(cosine_row("784-256-10", found, "graded, 32 steps, beta 0.5"))
    for n in (32, 128):
        found = measure(task, Coding(Code.RATE), phases(n, n, n, 0.5))
        what = f"rate, {n}/{n}/{n} ({2 * n} steps a nudged phase), beta 0.5"
        rows.append(cosine_row("784-256-10", found, what))
    return rows


def results_of_seeds(options: str, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """The results of all seeds, up to the first that is missing."""
    results: list[dict[str, Any]] = []
    with suppress(MissingError):
        for seed in seeds:
            results.append(learned(options, seed))  # noqa: PERF401 - those before it are kept
    return results


def comparison(options: dict[str, str]) -> list[str]:
    """A row for each entry, with the accuracies of all seeds.

    The first row is the baseline of the others, over the seeds that they have.
    """
    rows = [
        "| learned with | batch | test %, seeds 0, 1, ... | mean | difference "
        "| command (with `--out RUN --seed N`) |",
        "|---|---|---|---|---|---|",
    ]
    base: list[float] = []
    for name, line in options.items():
        results = results_of_seeds(line, SEEDS)
        if not results:
            rows.append(f"| {name} | - | not run yet | - | - | `neuro-eqprop learn {line}` |")
            continue
        found = [100 * each["test_accuracy"] for each in results]
        base = base or found
        mean = float(np.mean(found))
        difference = mean - float(np.mean(base[: len(found)]))
        each = " ".join(f"{accuracy:.2f}" for accuracy in found)
        rows.append(
            f"| {name} | {results[0]['batch']} | {each} | {mean:.2f} | {difference:+.2f} | "
            f"`neuro-eqprop learn {line}` |"
        )
        print(rows[-1], flush=True)
    return rows


DIGITS = "--epochs 10 --batch 8 --learning-rate 0.3"
ALONE = "--epochs 10 --learning-rate 0.05"


def digits() -> list[str]:
    return comparison(
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
    return comparison(
        {
            "rates": f"{TEN} --on rate --set free_steps=8 --set nudged_steps=4",
            "graded": f"{TEN} {GRADED}",
            "graded, 8 bits, 7-bit traces": f"{TEN} {GRADED} --bits 8 --limit 0.5",
            "spikes": f"{TEN} {SPIKES}",
            "spikes, 256 steps a nudged phase": f"{TEN} {SPIKES} --steps 256",
        }
    )


ALL = "--dataset mnist --hidden 512 --epochs 8 --learning-rate 0.02"
BINARY = (
    f"--dataset mnist --hidden 256 --epochs 6 --learning-rate 0.02 {SPIKES} "
    "--free 32 --settle 16 --window 48 --tau 4 --margin 0.1"
)


def full() -> list[str]:
    line = f"--dataset mnist --hidden 256 --epochs 3 --learning-rate 0.03 {GRADED}"
    return comparison(
        {
            "graded, 256 units, 3 epochs": line,
            "graded, 512 units, 8 epochs": f"{ALL} {GRADED}",
            "graded, 8 bits, 7-bit traces": f"{ALL} {GRADED} --bits 8 --limit 0.5 --margin 0.1",
            "binary spikes, 256 units, 6 epochs": BINARY,
        }
    )


def late() -> list[str]:
    """Cosines of the update of 300 images with minus the gradient, after binary learning."""
    learned(BINARY, 0, with_run=True)
    model = open_run(folder_of(BINARY, 0)).model
    net, params = model.network, {k: v.astype(np.float64) for k, v in model.params.items()}
    split = load_data("mnist").train.take(slice(300))
    target = one_hot(split.y, 10)
    exact = exact_gradient(net, params, Batch(split.x, target, measured=False))
    assert exact is not None
    rows = [
        "| code, steps of the free phase, before a window, of a window | input levels "
        "| input weights | output weights |",
        "|---|---|---|---|",
    ]
    rate = Coding(Code.RATE)
    for coding, each, tau, rounded in (
        (Coding(Code.GRADED, theta=2.0**-8), (16, 12, 4), 8.0, False),
        (rate, (32, 32, 32), 8.0, False),
        (rate, (32, 32, 32), 8.0, True),
        (rate, (32, 16, 48), 4.0, False),
        (rate, (32, 16, 48), 4.0, True),
        (rate, (128, 128, 128), 8.0, False),
        (rate, (128, 128, 128), 8.0, True),
    ):
        rule = LearningRule(phases(*each, 0.5), tau, batch=300)
        plastic = make_plastic(net, params, PlasticityConfig(coding, rule, 4.0, 1e-3))
        levels = rule.input_levels if rounded else 0
        stimulus = training_stimulus(net, split.x, target, coding, levels)
        samples = TrainingSamples(stimulus, np.zeros(300))
        found = load_learner("emulator").learn(plastic, samples)
        cosines = [
            cosine(found.tags[name], -exact[name]) or 0.0
            for name in ("input->hidden", "hidden->output")
        ]
        title = f"{coding.code.name}, {'/'.join(map(str, each))}, tau {tau:g}"
        rows.append(f"| {title} | {levels or 'all'} | {cosines[0]:.3f} | {cosines[1]:.3f} |")
        print(rows[-1], flush=True)
    return rows


def robust() -> list[str]:
    rows = ["| nonideality | graded, test % | spikes, test % | options |", "|---|---|---|---|"]
    flaws = {"none": ""}
    flaws |= {f"weight noise {n}": f"--weight-noise {n}" for n in (0.1, 0.3, 0.5)}
    flaws |= {f"{round(100 * n)} % dead neurons": f"--dead {n}" for n in (0.1, 0.3)}
    flaws |= {f"threshold mismatch {n}": f"--mismatch {n}" for n in (0.05, 0.1, 0.2)}
    flaws["8 bits"] = "--bits 8"
    flaws["8 bits, both directions rounded independently"] = "--bits 8 --asymmetric"
    for name, options in flaws.items():
        results = []
        for code, epochs in ((GRADED, 8), (SPIKES, 4)):
            line = f"--epochs {epochs} --learning-rate 0.05 {code} {options}"
            results.append([each["test_accuracy"] for each in results_of_seeds(line, SEEDS[:2])])
        graded, spikes = (
            f"{100 * np.mean(each):.2f}" if len(each) == len(SEEDS[:2]) else "not run yet"
            for each in results
        )
        rows.append(f"| {name} | {graded} | {spikes} | {f'`{options}`' if options else '-'} |")
        print(rows[-1], flush=True)
    return rows


def forgetting() -> list[str]:
    result = learned(f"--tasks 5 --epochs 3 --learning-rate 0.05 {GRADED}", 0)
    rows = ["| classes | just after learning, % | at the end, % |", "|---|---|---|"]
    for k, task in enumerate(result["forgetting"]):
        name = f"{2 * k} and {2 * k + 1}"
        rows.append(f"| {name} | {100 * task['learned']:.1f} | {100 * task['end']:.1f} |")
    return rows


def speed() -> list[str]:
    rows = ["| data, code, phases | batch 1 | batch 64 |", "|---|---|---|"]
    for name, hidden in (("digits", 128), ("mnist", 256)):
        split = load_data(name).train.take(slice(0, 600))
        net = layered(
            split.x.shape[1], (hidden,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID
        )
        params = initialize(net, np.random.default_rng(0))
        for code, each in ((Code.GRADED, (16, 12, 4)), (Code.RATE, (32, 32, 32))):
            coding, found = Coding(code, theta=2.0**-8), []
            stimulus = training_stimulus(net, split.x, one_hot(split.y, 10), coding)
            for batch in (1, 64):
                rule = LearningRule(phases(*each, 0.5), 8.0, batch=batch)
                plastic = make_plastic(net, params, PlasticityConfig(coding, rule, 4.0, 1e-3))
                learner = load_learner("emulator")
                for samples in (2, 600):
                    began = time.process_time()
                    part = TrainingSamples(stimulus.take(0, samples), np.full(samples, 0.02))
                    learner.learn(plastic, part)
                found.append(600 / (time.process_time() - began))
            title = f"{name}, {code.name}, {'/'.join(map(str, each))}"
            rows.append(f"| {title} | {found[0]:.0f} | {found[1]:.0f} |")
    return rows


TABLES = {
    "cosines": cosines,
    "digits": digits,
    "ten_thousand": ten_thousand,
    "full": full,
    "late": late,
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
