"""Title, summary and headline numbers of a report."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

from neuro_eqprop.html_report.commands import energy_command, evaluate_command, learn_command
from neuro_eqprop.html_report.contents import SIMULATOR_ORDER, RunContents
from neuro_eqprop.html_report.html import correlation, count, percent, quantity, reproduce
from neuro_eqprop.runs.rows import EvaluationRow

LABELS = {"lava": "Lava", "brian2": "Brian2", "snntorch": "snnTorch"}
"""Simulators as their developers write them."""


def title(run: RunContents) -> str:
    """Data set and model, or the name of the folder; the folder names of several runs."""
    if run.others:
        return " · ".join(each.name for each in run.runs)
    parts = [run.setting("dataset"), run.setting("model")]
    return " · ".join(str(part) for part in parts if part) or run.path.resolve().name


def network_name(run: RunContents) -> str:
    """Short description of the network: "layered network with 128 hidden units"."""
    model, hidden = run.setting("model"), run.setting("hidden")
    sizes = hidden if isinstance(hidden, list) else [hidden] if hidden else []
    units = " and ".join(str(size) for size in sizes)
    kind = f"{model} network" if model else "network"
    what = "channels" if model == "conv" else "hidden units"
    return kind + (f" with {units} {what}" if units else "")


def lead(run: RunContents) -> str:
    """Sentences on what was trained and how well, for each run."""
    if run.others:
        return "<br>".join(f"{escape(each.name)}: {lead_of(each)}" for each in run.runs)
    return lead_of(run)


def lead_of(run: RunContents) -> str:
    """Sentences on what was trained and how well."""
    if run.converted:
        return escape(". ".join([converted_sentence(run), *translated(run)]) + ".")
    data, beta, nudging = run.setting("dataset"), run.setting("beta"), run.setting("nudging")
    how = "equilibrium propagation"
    how += f" in spikes on {simulator_name(run.chip)}" if run.chip else ""
    details = [f"{nudging} nudging" if nudging else "", f"beta {beta}" if beta else ""]
    inside = ", ".join(part for part in details if part)
    learned = "learned" if run.metrics else "has not yet learned"
    sentences = [f"A {network_name(run)} {learned} {data or 'its data'} by {how}"]
    sentences[0] += f" ({inside})" if inside else ""
    if run.metrics:
        last = run.metrics[-1]
        epochs = count(last.get("epoch"))
        sentences[0] += f" in {epochs} epoch{'' if epochs == '1' else 's'}"
        sentences.append(
            f"Its accuracy on the test samples is {percent(last.get('test_accuracy'))}"
        )
    return escape(". ".join([*sentences, *translated(run)]) + ".")


def converted_sentence(run: RunContents) -> str:
    """The description of a network that was not trained here."""
    sizes = "" if run.model is None else "-".join(str(x.size) for x in run.model.network.layers)
    data = run.setting("dataset")
    used = f", for {data}" if data else ""
    return f"A network {sizes}, {run.converted}{used}; it was not trained here"


def translated(run: RunContents) -> list[str]:
    """A sentence on the agreement of spikes with rates; none without an evaluation."""
    best = preferred_evaluation(run)
    if best is None:
        return []
    return [
        f"Translated to spikes and run on {simulator_name(str(best.get('on')))} for "
        f"{count(best.get('steps'))} steps, it gives the same answer as the rates on "
        f"{percent(best.get('agreement'))} of {count(best.get('samples'))} samples"
    ]


class Configuration(NamedTuple):
    """What a number of spikes was measured with."""

    code: str
    bits: int | None
    steps: int | None
    on: str
    samples: int | None

    def __str__(self) -> str:
        bits = f", {count(self.bits)} bits" if self.bits else ""
        where = f"{self.samples} samples on {simulator_name(self.on)}"
        return f"{self.code} code{bits}, {count(self.steps)} steps, {where}"


def of_evaluation(row: EvaluationRow) -> Configuration:
    """The configuration of an evaluation."""
    return Configuration(
        *(str(row.get("code")), row.get("bits") or None, row.get("steps")),
        *(str(row.get("on")), row.get("samples")),
    )


def of_energy(run: RunContents, bits: int | None = None) -> Configuration:
    """The configuration whose events were counted for the joules, with the weights of a chip."""
    counted = run.energy.counted
    found = re.search(r" on (?:the )?([\w-]+)", counted.source)
    where = found[1] if found else counted.source
    samples = counted.accuracy_samples or counted.samples
    return Configuration(
        counted.code or "rate", bits or counted.bits or None, counted.steps, where, samples
    )


def preferred_evaluation(run: RunContents) -> EvaluationRow | None:
    """The last evaluation on the first simulator of `SIMULATOR_ORDER` that has one.

    One in the code, bits and steps of the joules comes before all others.
    """
    found = [row for row in run.evaluations if row.get("on") in SIMULATOR_ORDER]
    found.sort(key=lambda row: -SIMULATOR_ORDER.index(str(row["on"])))
    if len(run.energy):
        found.sort(key=lambda row: of_evaluation(row)[:3] == of_energy(run)[:3])
    return found[-1] if found else None


def simulator_name(name: str) -> str:
    """A simulator in a sentence."""
    return LABELS.get(name, f"the {name}" + ("" if name == "emulator" else " simulator"))


class Card(NamedTuple):
    """A headline number with a line that says what it is."""

    value: str
    label: str
    note: str
    configuration: Configuration | None = None
    """Of a number of spikes."""


def tiles(run: RunContents) -> str:
    """The headline numbers, each with a line that says what it is."""
    shown = "".join(
        f"<li><strong>{escape(card.value)}</strong><span>{escape(card.label)}</span>"
        f"<small>{escape(card.note)}</small></li>"
        for card in cards(run)
    )
    return f'<ul class="tiles">{shown}</ul>{reproduce(*commands(run))}' if shown else ""


def cards(run: RunContents) -> list[Card]:
    """Accuracy, agreement and joules; a number of spikes names its configuration."""
    shown: list[Card] = []
    for each in run.runs:
        if each.metrics:
            value = percent(each.metrics[-1].get("test_accuracy"))
            where = f"of spikes on {simulator_name(each.chip)}" if each.chip else "of rates"
            matrix = each.metrics[-1].get("confusion") or []
            where += f", {sum(map(sum, matrix))} samples" if matrix else ""
            note = f"of {each.name}" if run.others else where
            shown.append(Card(value, "test accuracy", note))
    if run.others:
        return shown
    best = preferred_evaluation(run)
    if best is not None:
        with_what = of_evaluation(best)
        note = f"rates and spikes: {with_what}"
        shown.append(Card(percent(best.get("agreement")), "same answer", note, with_what))
        note = f"rates and firing rates: {with_what}"
        shown.append(Card(correlation(best.get("pearson")), "correlation", note, with_what))
    return shown + joules(run)


def joules(run: RunContents) -> list[Card]:
    """Least energy of an inference on a chip that the network fits, and its accuracy.

    Both are of the configuration whose events were counted. Empty without an estimate.
    """
    known = [(each, each.inference.joules) for each in run.energy]
    found = [(each, estimate) for each, estimate in known if estimate is not None]
    if not found:
        return []
    chosen, estimate = min(found, key=lambda pair: (not pair[0].fits, pair[1].value))
    counted = run.energy.counted
    accuracy = counted.accuracy if chosen.accuracy is None else chosen.accuracy
    with_what = of_energy(run, None if chosen.accuracy is None else chosen.bits)
    missing = chosen.inference.missing
    note = f"estimate, {quantity(estimate.low, 'J')} to {quantity(estimate.high, 'J')}"
    note += f"; {len(missing)} terms unknown" if missing else ""
    if counted.samples not in (0, with_what.samples):
        note += f"; events of {counted.samples} samples"
    least = ">= " if chosen.inference.at_least else ""
    value, label = f"{least}{quantity(estimate.value, 'J')}", f"an inference on {chosen.profile}"
    shown = [Card(value, label, f"{with_what}; {note}", with_what)]
    if accuracy is not None:
        right = Card(percent(accuracy), "accuracy of spikes", f"{with_what}", with_what)
        shown.insert(0, right)
    return shown


def commands(run: RunContents) -> list[str]:
    """The commands that reproduce the headline numbers."""
    found = [learn_command(each) for each in run.runs if each.metrics]
    if not run.others:
        best = preferred_evaluation(run)
        found += [evaluate_command(run, best)] if best is not None else []
        found += [energy_command(run)] if len(run.energy) else []
    return found
