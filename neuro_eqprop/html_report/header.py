"""Title, summary and headline numbers of a report."""

from __future__ import annotations

from html import escape

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


def configuration(row: EvaluationRow) -> str:
    """Code, steps and samples of an evaluation."""
    bits = f", {count(row.get('bits'))} bits" if row.get("bits") else ""
    numbers = f"{count(row.get('steps'))} steps, {count(row.get('samples'))} samples"
    return f"{row.get('code')} code{bits}, {numbers}"


def preferred_evaluation(run: RunContents) -> EvaluationRow | None:
    """The last evaluation on the first simulator of `SIMULATOR_ORDER` that has one."""
    found = [row for row in run.evaluations if row.get("on") in SIMULATOR_ORDER]
    found.sort(key=lambda row: -SIMULATOR_ORDER.index(str(row["on"])))
    return found[-1] if found else None


def simulator_name(name: str) -> str:
    """A simulator in a sentence."""
    return LABELS.get(name, f"the {name}" + ("" if name == "emulator" else " simulator"))


def tiles(run: RunContents) -> str:
    """The headline numbers, each with a line that says what it is."""
    shown: list[tuple[str, str, str]] = []
    for each in run.runs:
        if each.metrics:
            value = percent(each.metrics[-1].get("test_accuracy"))
            where = f"of spikes on {simulator_name(each.chip)}" if each.chip else "of rates"
            shown.append((value, "test accuracy", f"of {each.name}" if run.others else where))
    best = preferred_evaluation(run)
    if best is not None and not run.others:
        where = f"rates and spikes on {simulator_name(str(best.get('on')))}: {configuration(best)}"
        shown.append((percent(best.get("agreement")), "same answer", where))
        shown.append((correlation(best.get("pearson")), "correlation", "of the same run"))
    shown += [] if run.others else joules(run)
    cards = "".join(
        f"<li><strong>{escape(value)}</strong><span>{escape(label)}</span>"
        f"<small>{escape(note)}</small></li>"
        for value, label, note in shown
    )
    return f'<ul class="tiles">{cards}</ul>{reproduce(*commands(run))}' if cards else ""


def joules(run: RunContents) -> list[tuple[str, str, str]]:
    """Least energy of an inference on a chip that the network fits; empty without an estimate."""
    known = [(each, each.inference.joules) for each in run.energy]
    found = [(each, estimate) for each, estimate in known if estimate is not None]
    if not found:
        return []
    chosen, estimate = min(found, key=lambda pair: (not pair[0].fits, pair[1].value))
    missing = chosen.inference.missing
    note = f"estimate, {quantity(estimate.low, 'J')} to {quantity(estimate.high, 'J')}"
    note += f"; {len(missing)} terms unknown" if missing else ""
    return [(quantity(estimate.value, "J"), f"an inference on {chosen.profile}", note)]


def commands(run: RunContents) -> list[str]:
    """The commands that reproduce the headline numbers."""
    found = [learn_command(each) for each in run.runs if each.metrics]
    if not run.others:
        best = preferred_evaluation(run)
        found += [evaluate_command(run, best)] if best is not None else []
        found += [energy_command(run)] if len(run.energy) else []
    return found
