"""The words and tables of a report: everything that came from a file is escaped here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape

from neuro_eqprop.analysis.compare import SETTLED
from neuro_eqprop.io.energy_file import Row, number
from neuro_eqprop.report.contents import SIMULATOR_ORDER, RunContents, TraceView
from neuro_eqprop.units import si

DASH = "\u2013"
SPELLED = {"lava": "Lava", "brian2": "Brian2", "snntorch": "snnTorch"}
"""The simulators as their makers write them."""


def percent(value: object, digits: int = 1) -> str:
    """A fraction of one, for people."""
    known = number(value)
    return DASH if known is None else f"{100 * known:.{digits}f}\u00a0%"


def decimal(value: object, digits: int = 4) -> str:
    """A number of about one, for people."""
    known = number(value)
    return DASH if known is None else f"{known:.{digits}f}"


def count(value: object) -> str:
    """A number of things, with thin spaces between thousands; one decimal below a hundred."""
    known = number(value)
    if known is None:
        return DASH
    whole = known == int(known) or abs(known) >= 100
    return f"{known:,.0f}".replace(",", "\u202f") if whole else f"{known:.1f}"


def quantity(value: float, unit: str) -> str:
    """A number with an SI prefix, as HTML writes it: 3.1e-6 is 3.1 µ."""
    return si(value, unit).replace(" u", " µ").replace(" ", "\u00a0")


def command(*words: object) -> str:
    """A command line as it is typed, as HTML."""
    return f"<code>{escape(shlex.join(str(word) for word in words))}</code>"


def made(*commands: str) -> str:
    """The lines below a figure that say how to make it again."""
    return f'<div class="made"><span>Reproduce</span>{"".join(commands)}</div>'


def table(name: str, header: Sequence[str], rows: Iterable[Sequence[tuple[object, str]]]) -> str:
    """A table that sorts; a cell is what it sorts by and what it shows (already HTML)."""
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>' for title in header
    )
    body = "".join(f"<tr>{''.join(cell(*each) for each in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table class="sorts" id="{name}-table"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def cell(value: object, shown: str) -> str:
    """One cell; numbers stand to the right."""
    known = number(value)
    if known is None and isinstance(value, str):
        return f'<td data-value="{escape(value)}">{shown}</td>'
    return f'<td class="number" data-value="{"" if known is None else repr(known)}">{shown}</td>'


def text_cell(value: object) -> tuple[object, str]:
    """A cell of text; a dash where there is none."""
    shown = DASH if value is None else str(value)
    return shown, escape(shown)


def network_name(run: RunContents) -> str:
    """The network in a few words: "a layered network (128 hidden units)"."""
    model, hidden = run.setting("model"), run.setting("hidden")
    sizes = hidden if isinstance(hidden, list) else [hidden] if hidden else []
    units = " and ".join(str(size) for size in sizes)
    kind = f"{model} network" if model else "network"
    what = "channels" if model in ("conv", "multiscale") else "hidden units"
    return kind + (f" with {units} {what}" if units else "")


def lead(run: RunContents) -> str:
    """What was trained and how well, in sentences, for each run."""
    if run.others:
        return "<br>".join(f"{escape(each.name)}: {lead_of(each)}" for each in run.runs)
    return lead_of(run)


def lead_of(run: RunContents) -> str:
    """What was trained and how well, in sentences."""
    data, beta, nudging = run.setting("dataset"), run.setting("beta"), run.setting("nudging")
    how = "equilibrium propagation"
    how += f" in spikes on {simulator_name(run.chip)}" if run.chip else ""
    details = [f"{nudging} nudging" if nudging else "", f"beta {beta}" if beta else ""]
    inside = ", ".join(part for part in details if part)
    learned = "learned" if run.metrics else "is to learn"
    said = [f"A {network_name(run)} {learned} {data or 'its data'} by {how}"]
    said[0] += f" ({inside})" if inside else ""
    if run.metrics:
        last = run.metrics[-1]
        epochs = count(last.get("epoch"))
        said[0] += f" in {epochs} epoch{'' if epochs == '1' else 's'}"
        accuracy = percent(last.get("test_accuracy"))
        said.append(f"It answers {accuracy} of the samples it was not trained on correctly")
    best = spiking(run)
    if best is not None:
        said.append(
            f"Translated to spikes and run on {spelled(best)} for {count(best.get('steps'))} "
            f"steps, it gives the same answer as the rates on {percent(best.get('agreement'))} of "
            f"{count(best.get('samples'))} samples"
        )
    return escape(". ".join(said) + ".")


def spiking(run: RunContents) -> Row | None:
    """The evaluation that speaks for the spikes: the favourite simulator's last one."""
    found = [row for row in run.evaluations if row.get("on") in SIMULATOR_ORDER]
    found.sort(key=lambda row: -SIMULATOR_ORDER.index(str(row["on"])))
    return found[-1] if found else None


def spelled(row: Row) -> str:
    """The name of the simulator of an evaluation."""
    return simulator_name(str(row.get("on")))


def simulator_name(name: str) -> str:
    """A simulator as it is spoken of."""
    return SPELLED.get(name, f"the {name}" + ("" if name == "emulator" else " simulator"))


def tiles(run: RunContents, more: Sequence[tuple[str, str, str]]) -> str:
    """The headline numbers, each with a line that says what it is."""
    shown: list[tuple[str, str, str]] = []
    for each in run.runs:
        if each.metrics:
            value = percent(each.metrics[-1].get("test_accuracy"))
            where = f"of spikes on {simulator_name(each.chip)}" if each.chip else "of rates"
            whose = f"of {each.name}" if run.others else where
            shown.append((value, "test accuracy", whose))
    best = spiking(run)
    if best is not None and not run.others:
        where = f"rates and spikes on {spelled(best)}"
        shown.append((percent(best.get("agreement")), "same answer", where))
        shown.append((decimal(best.get("pearson")), "correlation", "of rates and firing rates"))
    cards = "".join(
        f"<li><strong>{escape(value)}</strong><span>{escape(label)}</span>"
        f"<small>{escape(note)}</small></li>"
        for value, label, note in [*shown, *more]
    )
    return f'<ul class="tiles">{cards}</ul>{made(*headline_commands(run))}' if cards else ""


def agreement_table(views: Sequence[TraceView]) -> str:
    """Layers and phases of every simulator's trace against the rates."""
    header = [
        "simulator",
        "layer",
        "phase",
        "Pearson",
        "RMSE",
        "99.9 %",
        "worst",
        "settled",
        "rates",
    ]
    rows = [
        [
            text_cell(view.title),
            text_cell(each.layer),
            text_cell(each.phase),
            (each.distance.pearson, decimal(each.distance.pearson, 5)),
            (each.distance.rmse, decimal(each.distance.rmse)),
            (each.distance.p999, decimal(each.distance.p999)),
            (each.distance.worst, decimal(each.distance.worst)),
            (each.settled_at, str(each.settled_at)),
            (each.settled_at_a, str(each.settled_at_a)),
        ]
        for view in views
        for each in view.run.agreements[view.name].layers
    ]
    note = (
        f"<p>Pooled over samples and units. 99.9 % is that percentile of the absolute error. "
        f"Settled is the step of the phase from which on the firing rate stays within {SETTLED} "
        f"(root mean square) of where it ends; rates is the same for the rates.</p>"
    )
    return table("agreement", header, rows) + note


def updates_table(views: Sequence[TraceView]) -> str:
    """The Hebbian updates of every connection, rates against spikes."""
    rows = [
        [
            text_cell(view.title),
            text_cell(each.connection),
            (each.cosine, decimal(each.cosine, 5)),
            (each.sign_agreement, percent(each.sign_agreement)),
        ]
        for view in views
        for each in view.run.agreements[view.name].connections
    ]
    if not rows:
        return ""
    header = ["simulator", "connection", "cosine", "same sign"]
    head = "<h3>The weight changes both sides ask for</h3>"
    return head + table("updates", header, rows)


def simulators_table(run: RunContents) -> str:
    """The last evaluation of each kind, of each run."""
    names = ["on", "code", "bits", "steps", "samples", "accuracy", "same answer", "Pearson", "RMSE"]
    header = [*(["run"] if run.others else []), *names, "spikes", "synops", "seconds"]
    rows = [
        [
            *([text_cell(each.name)] if run.others else []),
            text_cell(row.get("on")),
            text_cell(row.get("code")),
            (row.get("bits"), count(row.get("bits"))),
            (row.get("steps"), count(row.get("steps"))),
            (row.get("samples"), count(row.get("samples"))),
            (row.get("accuracy"), percent(row.get("accuracy"), 2)),
            (row.get("agreement"), percent(row.get("agreement"), 2)),
            (row.get("pearson"), decimal(row.get("pearson"), 5)),
            (row.get("rmse"), decimal(row.get("rmse"))),
            (row.get("spikes_per_neuron"), count(row.get("spikes_per_neuron"))),
            (row.get("synops_per_sample"), count(row.get("synops_per_sample"))),
            (row.get("seconds"), decimal(row.get("seconds"), 2)),
        ]
        for each in run.runs
        for row in last_evaluations(each)
    ]
    return table("simulators", header, rows)


def last_evaluations(run: RunContents) -> list[Row]:
    """Of evaluations that differ in nothing but their outcome the last one."""
    last: dict[tuple[str, ...], Row] = {}
    for row in run.evaluations:
        key = tuple(str(row.get(name)) for name in ("on", "code", "bits", "steps", "samples"))
        last.pop(key, None)
        last[key] = row
    return list(last.values())


def runs_table(run: RunContents, joules: Sequence[Sequence[tuple[str, str, str]]]) -> str:
    """A row for each run: what was trained, how, how well, and what an inference costs."""
    settings = ("dataset", "model", "hidden", "rule", "nudging", "beta", "epochs", "seed")
    rows: list[list[tuple[object, str]]] = []
    for each, bill in zip(run.runs, joules, strict=True):
        last = each.metrics[-1] if each.metrics else {}
        best = spiking(each) or {}
        rows.append(
            [
                text_cell(each.name),
                *(setting_cell(each.setting(name)) for name in settings),
                (last.get("test_accuracy"), percent(last.get("test_accuracy"), 2)),
                (best.get("agreement"), percent(best.get("agreement"), 2)),
                text_cell(f"{bill[0][0]}, {bill[0][1]}" if bill else None),
            ]
        )
    header = ["run", *settings, "test accuracy", "same answer", "joules"]
    return table("runs", header, rows)


def setting_cell(value: object) -> tuple[object, str]:
    """A setting; a list as it is written on the command line."""
    if isinstance(value, list):
        return text_cell(",".join(str(each) for each in value))
    return (value, escape(f"{value:g}")) if number(value) is not None else text_cell(value)


def evaluate_command(run: RunContents, row: Row) -> str:
    """How an evaluation is made again."""
    words: list[object] = ["neuro-eqprop", "evaluate", run.path, "--on", row.get("on")]
    for name in ("samples", "steps", "code", "bits"):
        if row.get(name) is not None:
            words += [f"--{name}", row[name]]
    return command(*words)


def energy_command(run: RunContents) -> str:
    """The call that made the estimate of a run."""
    return command("neuro-eqprop", "energy", run.path, *run.bills.options)


def evaluate_commands(run: RunContents) -> list[str]:
    """How each of the evaluations is made again."""
    return list(dict.fromkeys(evaluate_command(run, row) for row in run.evaluations))


def learn_command(run: RunContents) -> str:
    """How the network is made again: trained as rates, or learning on a chip."""
    how = "learn" if run.chip else "train"
    return command("neuro-eqprop", how, run.path / "study.toml", "--out", "NEW")


def headline_commands(run: RunContents) -> list[str]:
    """How the headline numbers are made again."""
    found = [learn_command(each) for each in run.runs if each.metrics]
    if not run.others:
        best = spiking(run)
        found += [evaluate_command(run, best)] if best is not None else []
        found += [energy_command(run)] if run.bills.chips else []
    return found


def listing(title: str, items: Sequence[str]) -> str:
    """A titled list, or nothing."""
    if not items:
        return ""
    points = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<p class="listed">{escape(title)}</p><ul>{points}</ul>'
