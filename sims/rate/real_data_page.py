"""Make the page on CIFAR-10 and SST-2 from `measured/real_data.json`.

    python sims/rate/real_data_page.py > docs/results/real-data.md

The numbers are written by `cifar.py` and `sst2.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

MEASURED = Path(__file__).parent / "measured" / "real_data.json"
HEAD = """# CIFAR-10 and SST-2

Accuracy of EqProp and of its baselines on photographs and on film reviews.
This page is generated: `python sims/rate/real_data_page.py > docs/results/real-data.md`, from the
results of `sims/rate/cifar.py` and `sims/rate/sst2.py`. One thread; CPU seconds contain the
evaluation after each epoch and were measured on a busy machine.
"""


def percent(value: float) -> str:
    """A fraction in percent."""
    return f"{100 * value:.1f}"


def cifar(rows: list[dict[str, Any]], data: str) -> str:
    """The table of the pyramid, epoch by epoch."""
    most = max(row["epochs_done"] for row in rows)
    heads = " | ".join(str(k + 1) for k in range(most))
    lines = [
        f"## CIFAR-10 ({data})",
        "",
        "Model `pyramid` (134 282 parameters), 50 000 images, flips and shifts of 2 pixels, Adam "
        "with one cycle of 8 epochs to 0.005, batch 64. Test accuracy in percent (10 000 images) "
        "after each epoch:",
        "",
        f"| rule | seed | {heads} | CPU s | worst cosine at the end |",
        "|---|" + "---|" * (most + 3),
    ]
    rows = sorted(rows, key=lambda row: (row["rule"] != "hebbian", row["seed"]))
    for row in rows:
        found = [percent(each) for each in row["test_accuracy"]]
        cells = " | ".join([*found, *[""] * (most - len(found))])
        cosine = "" if row["worst_cosine"] is None else f"{row['worst_cosine']:.4f}"
        lines.append(
            f"| {row['rule']} | {row['seed']} | {cells} | {row['cpu_seconds']:.0f} | {cosine} |"
        )
    final = {
        rule: mean(row["test_accuracy"][-1] for row in rows if row["rule"] == rule)
        for rule in ("hebbian", "backprop")
    }
    lines += [
        "",
        f"After the last epoch EqProp has {percent(final['hebbian'])} % and backpropagation "
        f"{percent(final['backprop'])} %, means over the seeds.",
        "",
        "These runs have the default `feedback=0.001` and one sweep of each phase. With a feedback "
        "of 0.01 EqProp reaches 78.7 % too (seed 0), but with a worst cosine of 0.9845 at the end.",
    ]
    return "\n".join(lines)


def cifar_held_out(rows: list[dict[str, Any]]) -> str:
    """How the learning rate was chosen."""
    if not rows:
        return (
            "The learning rate of 0.005 was picked on 2000 of the test images. `cifar.py RUNS "
            "choose` compares learning rates on training images that are held out; it was not run "
            "yet."
        )
    found = "; ".join(
        f"{row['learning_rate']}: {percent(row['held_out_accuracy'])} %" for row in rows
    )
    return (
        "The learning rate of 0.005 was picked on 2000 of the test images. Later comparison on "
        "5000 training images that were held out, after an epoch of 20 000 others (seed 0): "
        f"{found}."
    )


def cifar_spikes(row: dict[str, Any]) -> str:
    """The network of EqProp as spikes."""
    samples, right = row["samples"], percent(row["accuracy"])
    command = f"evaluate RUN --on emulator --code {row['code']} --steps {row['steps']}"
    return (
        f"As spikes (`{command} --samples {samples}`), the network of EqProp (seed 0) gives the "
        f"class of its rates for {percent(row['agreement'])} % of {samples} test images and is "
        f"right for {right} %, with {row['spikes_per_neuron']:.2f} messages a neuron."
    )


def cifar_default(rows: list[dict[str, Any]]) -> str:
    """Runs at the default feedback, a sentence each."""
    return " ".join(
        f"With the default `feedback=0.001`, a cycle of {row['epochs']} epoch (seed {row['seed']}) "
        f"gives {percent(row['test_accuracy'])} % in {row['cpu_seconds']:.0f} CPU s, with a worst "
        f"cosine of {row['worst_cosine']:.4f} at its end."
        for row in rows
    )


def sst2(rows: list[dict[str, Any]], held: list[dict[str, Any]]) -> str:
    """The table of the text model."""
    lines = [
        "## SST-2",
        "",
        "Model `text` with its defaults (13 836 ids, 40 tokens, vectors of 64, 64 hidden units), "
        "67 349 training sentences, 3 epochs; accuracy on the 872 development sentences.",
        "",
        "| model | accuracies by seed, % | mean | CPU s of a training | worst cosine at the end |",
        "|---|---|---|---|---|",
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        name = f"{row['model']}, {row['rule']}" if "rule" in row else row["model"]
        groups.setdefault(name, []).append(row)
    for name, found in groups.items():
        values = [row["accuracy"] for row in found]
        cosines = [row["worst_cosine"] for row in found if row.get("worst_cosine")]
        lines.append(
            f"| {name} | {', '.join(map(percent, values))} | {percent(mean(values))} | "
            f"{mean(row['cpu_seconds'] for row in found):.0f} | "
            f"{f'{min(cosines):.4f}' if cosines else ''} |"
        )
    chosen = "; ".join(
        f"`pooling={row['settings']['pooling']}`, `feedback={row['settings']['feedback']}`: "
        f"{percent(row['accuracy'])} %, worst cosine {row['worst_cosine']:.2f}"
        for row in held
    )
    lines += ["", f"Chosen on a twentieth of the training sentences, held out (seed 0): {chosen}."]
    return "\n".join(lines)


def main() -> None:
    """Print the page."""
    measured = json.loads(MEASURED.read_text())
    print(HEAD)
    print(cifar(measured["cifar"], measured["data"]), end="\n\n")
    print(cifar_spikes(measured["cifar_spikes"]), end="\n\n")
    print(cifar_default(measured["cifar_default"]), end="\n\n")
    print(cifar_held_out(measured.get("cifar_held_out", [])), end="\n\n")
    print(sst2(measured["sst2"], measured["sst2_held_out"]))


if __name__ == "__main__":
    main()
