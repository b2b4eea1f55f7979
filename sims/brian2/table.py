"""Agreement of the biological rendering with the rates, by neuron model and parameter.

`python sims/brian2/table.py` runs test samples of the digits and of MNIST freely in continuous time
with each setting, learns three digits in continuous time, and writes docs/results/biology.md. Rows
are kept in sims/brian2/measured.json: a row that is there is not measured again.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import cosine
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.runs.learn_on_chip.task import prepare
from neuro_eqprop.runs.on_chip_config import learning_settings
from neuro_eqprop.simulators.biology.neuron_models import MODELS
from neuro_eqprop.simulators.biology.simulator import biology
from neuro_eqprop.simulators.brian2.continuous_learning import Brian2BiologyLearner
from neuro_eqprop.simulators.registry import load_learner

HERE = Path(__file__).parent
STORE, PAGE = HERE / "measured.json", HERE.parents[1] / "docs" / "results" / "biology.md"
SAMPLES, STEPS = 40, 64
MODELS_OF = {"digits": {"hidden": (128,), "epochs": 12}, "mnist": {"hidden": (128,), "epochs": 2}}
SHARED: dict[str, dict[str, Any]] = {
    "default": {},
    "tau_syn 1 ms": {"tau_syn": "1ms"},
    "tau_syn 20 ms": {"tau_syn": "20ms"},
    "delay 5 ms": {"delay": "5ms"},
    "noise 0.2": {"noise": 0.2},
    "noise 0.5": {"noise": 0.5},
    "dale interneurons": {"dale": "interneurons"},
    "Poisson input": {"poisson": True},
}
OWN: dict[str, dict[str, dict[str, Any]]] = {
    "lif": {
        "tau_m 50 ms": {"tau_m": "50ms"},
        "tau_m 20 ms": {"tau_m": "20ms"},
        "tau_m 10 ms": {"tau_m": "10ms"},
        "refractory 2 ms": {"refractory": "2ms"},
        "refractory 10 ms": {"refractory": "10ms"},
        "dale pairs": {"dale": "pairs"},
    },
    "adex": {"tau_m 20 ms": {"tau_m": "20ms"}, "b 0": {"b": "0nA"}},
    "conductance": {"tau_m 10 ms": {"tau_m": "10ms"}, "refractory 2 ms": {"refractory": "2ms"}},
    "izhikevich": {"d 2 mV/ms": {"d": "2mV/ms"}},
}
STEP = {"lif": "1ms", "adex": "0.2ms", "conductance": "0.5ms", "izhikevich": "0.2ms"}


def measured(
    key: str, measure: Callable[[], dict[str, Any]], *, new: bool
) -> dict[str, Any] | None:
    """A stored row, or else a new one; None if none is to be measured."""
    stored: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    if key not in stored and not new:
        return None
    if key not in stored:
        stored[key] = measure()
        STORE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
        print(key, stored[key], flush=True)
    return dict(stored[key])


def agreement_rows(name: str, neurons: list[str], *, new: bool) -> list[list[str]]:
    """A row for each neuron model and setting on a data set."""
    made: dict[str, Any] = {}

    def model() -> tuple[ne.Model, Split]:
        if not made:
            data = ne.load_data(name)
            made["model"] = ne.train("layered", data, seed=0, **MODELS_OF[name])
            made["test"] = data.test.take(slice(SAMPLES))
        return made["model"], made["test"]

    def row(neuron: str, options: dict[str, Any]) -> dict[str, Any]:
        network, test = model()
        backend = biology(neuron=neuron, dt=STEP[neuron], **options)
        coding = "rate" if options.get("poisson") else "current"
        found = network.evaluate(test, on=backend, code="rate", steps=STEPS, input=coding)
        keep = ("accuracy", "rate_accuracy", "agreement", "pearson", "rmse")
        return {key: found.to_dict()[key] for key in keep}

    rows = []
    for neuron in STEP:
        for setting, options in (SHARED | OWN[neuron]).items():
            found = measured(
                f"{name}/{neuron}/{setting}",
                lambda n=neuron, o=options: row(n, o),
                new=new and neuron in neurons,
            )
            if found is None:
                continue
            rows.append(
                [neuron, setting]
                + [f"{found[key]:.1%}" for key in ("accuracy", "agreement")]
                + [f"{found['pearson'] or 0.0:.4f}", f"{found['rmse']:.4f}"]
            )
    return rows


def learning_row(neuron: str, epochs: int) -> dict[str, Any]:
    """Cosine of the first updates with those in discrete time, and accuracy on three digits."""
    whole = ne.load_data("digits")
    parts = [part.take(np.flatnonzero(part.y < 3)) for part in (whole.train, whole.test)]
    data = Dataset(parts[0].x, parts[0].y, parts[1].x, parts[1].y)
    text = f"neuron={neuron},dt={STEP[neuron]}"
    settings = {"hidden": (32,), "batch": 20, "beta": 0.5, "learning_rate": 0.3, "code": "rate"}
    settings |= {"steps": 48, "epochs": epochs, "on": "brian2-biology", "biology": text}
    study, config = learning_settings(settings | {"model": "layered", "dataset": "digits"})
    task = prepare(study, config, data, study.network(data))
    _, samples = task.training_samples(0, most=20)
    learner = task.learner
    assert isinstance(learner, Brian2BiologyLearner)
    tags = [each.learn(task.plastic, samples).tags for each in (load_learner("emulator"), learner)]
    cosines = {
        name: cosine(tags[0][name], tags[1][name]) for name in tags[0] if "always" not in name
    }
    model = ne.learn_on_chip("layered", data, **settings)
    backend = biology(neuron=neuron, dt=STEP[neuron])
    membranes = model.evaluate(data.test, on=backend, code="rate", steps=STEPS, input="current")
    return {"cosines": cosines, "epochs": epochs, "in_membranes": membranes.accuracy} | {
        key: [line[key] for line in model.history] for key in ("test_accuracy", "train_accuracy")
    }


def table(header: list[str], rows: list[list[str]]) -> str:
    """Rows in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="digits,mnist", help="separated by commas")
    parser.add_argument("--learn", default="lif", help="neuron models that learn, by commas")
    parser.add_argument("--epochs", type=int, default=2, help="epochs of learning")
    meaning = "neuron models to measure, separated by commas"
    parser.add_argument("--neurons", default=",".join(STEP), help=meaning)
    meaning = "write the page from the stored rows alone"
    parser.add_argument("--stored", action="store_true", help=meaning)
    args = parser.parse_args()
    torch.set_num_threads(1)
    header = ["neuron", "setting", "accuracy", "agreement", "Pearson", "RMSE"]
    parts = [
        "# Biology, measured",
        f"The first {SAMPLES} test samples in {STEPS} steps of 10 ms, run freely in continuous "
        "time (`brian2-biology`), compared with the rates of the same network settled in float64: "
        "accuracy of the spikes, agreement of the classes, Pearson correlation and root mean "
        "square error of the firing rates over the last 75 % of the run. Networks: 64-128-10 on "
        "the digits, "
        "784-128-10 on MNIST, seed 0. Each row changes one option of the neuron model; "
        "[biology](../explanation/biology.md) describes the options and their sources. Made by "
        "`python sims/brian2/table.py`.",
        "Neuron models: "
        + "; ".join(f"`{model.name}` ({model.source})" for model in MODELS.values())
        + "; `lif` is the integrate-and-fire neuron of the reference in continuous time.",
    ]
    for name in args.datasets.split(","):
        parts += [
            f"## {name}",
            table(header, agreement_rows(name, args.neurons.split(","), new=not args.stored)),
        ]
    learned = []
    for neuron in filter(None, args.learn.split(",")):
        found = measured(
            f"learn/{neuron}", lambda n=neuron: learning_row(n, args.epochs), new=not args.stored
        )
        if found is None:
            continue
        cosines = [f"{name} {value:.4f}" for name, value in found["cosines"].items()]
        accuracies = [
            " ".join(f"{value:.1%}" for value in found[k])
            for k in ("train_accuracy", "test_accuracy")
        ]
        last = f"{found['in_membranes']:.1%}"
        learned.append([neuron, "; ".join(cosines), *accuracies, last])
    head = ["neuron", "cosine of the updates with discrete time", "training, by epoch"]
    head += ["test on the emulator, by epoch", "test in the membranes"]
    parts += [
        "## Learning in continuous time",
        "Digits 0, 1 and 2 (64-32-3, beta 0.5, batches of 20 samples side by side, nudged phases "
        "of 480 ms): the cosine of the tags of the first batch with those of the emulator; then "
        "accuracies. In training, the free phases of the membranes while they learn, over each "
        "epoch from its first sample on; on the test samples, the learned weights on the emulator "
        f"after each epoch, and in the membranes after the last one ({STEPS} steps of 10 ms).",
        table(head, learned),
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
