"""One self-contained interactive HTML page from a run folder: no network, nothing to install."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from neuro_eqprop import __version__
from neuro_eqprop.analysis import page_joules
from neuro_eqprop.analysis import page_text as text
from neuro_eqprop.analysis.page_charts import SMOOTH, Limits, charts
from neuro_eqprop.analysis.page_data import Run, gather
from neuro_eqprop.traces import Trace

LARGEST = 2_500_000
"""Characters of chart data in a page; the chart library adds five million."""


def page(path: Path, traces: Mapping[str, Trace], *, notes: Sequence[str] = ()) -> str:
    """The report of the run folder `path`, whose traces come read, by the names of their files."""
    run = gather(path, traces, notes)
    scripts = {"library": library(), "script": resource("page.js")}
    policy = " ".join(f"'sha256-{digest(script)}'" for script in scripts.values())
    title = escape(title_of(run))
    return Template(resource("page.html")).substitute(
        scripts,
        title=title,
        # The page cannot load anything, and runs no script but its own two.
        policy=f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {policy}",
        style=resource("page.css"),
        lead=text.lead(run),
        tiles=text.tiles(run, headline(run)),
        sections="\n".join(sections(run)),
        data=embed(run),
        version=escape(__version__),
        path=escape(str(path)),
    )


def resource(name: str) -> str:
    """A file beside this one."""
    return files("neuro_eqprop.analysis").joinpath(name).read_text(encoding="utf-8")


def library() -> str:
    """The chart library, as the plotly package ships it."""
    from plotly.offline import get_plotlyjs

    # Only inside of strings and patterns, where the added backslash means nothing.
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def digest(script: str) -> str:
    """What a content security policy knows a script by."""
    return b64encode(sha256(script.encode()).digest()).decode()


def title_of(run: Run) -> str:
    """The data and the model, or the folder's name."""
    parts = [run.setting("dataset"), run.setting("model")]
    return " · ".join(str(part) for part in parts if part) or run.path.resolve().name


def embed(run: Run) -> str:
    """The chart data as JSON that cannot end the element it stands in; fewer samples if too big."""
    limits = Limits()
    while True:
        told = json.dumps(charts(run, limits), separators=(",", ":"), allow_nan=False)
        if len(told) <= LARGEST or limits == limits.halved():
            return told.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        limits = limits.halved()


def section(name: str, title: str, body: str) -> str:
    """A part of the page."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>'


def chart(name: str, label: str, *, tall: bool = False) -> str:
    """A place the script draws in."""
    kind = "chart tall" if tall else "chart"
    return (
        f'<figure><figcaption>{escape(label)}</figcaption><div class="{kind}" id="{name}" '
        f'role="img" aria-label="{escape(label)}"></div></figure>'
    )


def sections(run: Run) -> list[str]:
    """All parts of the page, in their order."""
    parts = [learning(run), settling(run), agreement(run), simulators(run), energy(run), about(run)]
    return [part for part in parts if part]


def missing(what: str, *words: object) -> str:
    """What stands where there is nothing to show yet."""
    return f'<p class="missing">{escape(what)} {text.command("neuro-eqprop", *words)}</p>'


def learning(run: Run) -> str:
    """Curves over the epochs."""
    again = text.command("neuro-eqprop", "train", run.path / "study.toml", "--out", "NEW")
    if not run.metrics:
        body = missing("No training was recorded here; this trains:", "train", "--out", run.path)
        return section("learning", "Learning", body)
    body = (
        "<p>For every sample the network settles freely and then again with its output nudged; "
        "each weight changes by what the units at its two ends did differently.</p>"
        f'<div class="grid three">{chart("accuracy", "Accuracy over epochs")}'
        f"{chart('settle', 'Steps to settle')}"
        f"{chart('spectral', 'Spectral norms of the weights')}</div>"
    )
    return section("learning", "Learning", body + text.made(again))


def settling(run: Run) -> str:
    """Rates and firing rates on their way to equilibrium, and the spikes."""
    named = ([run.rates] if run.rates else []) + list(run.spikes.items())
    if not named:
        words = ("simulate", run.path, "--on", "reference", "--traces", run.path / "traces.h5")
        return section("settling", "Settling", missing("No traces yet; this records some:", *words))
    panels = chart("rates", "Rates", tall=True) if run.rates else ""
    panels += chart("firing", "Firing rates", tall=True) if run.spikes else ""
    raster = chart("raster", "Spikes", tall=True) if run.spikes else ""
    body = (
        "<p>The same sample twice: the rates as they are solved for, and the firing rates, which "
        f"are the mean of the spikes over the last part of the phase so far (at least {SMOOTH} "
        "steps), or what messages add up to. A line is a unit and keeps its colour. The thick one "
        "is the right answer. Bands are the phases: free, then pulled away from the answer and "
        "towards it.</p>"
        '<div class="controls"><canvas id="image" width="32" height="32" hidden></canvas>'
        '<label class="grow"><span id="which">sample</span>'
        '<input type="range" id="sample" min="0" value="0" step="1"></label>'
        '<label>layer <select id="layer"></select></label>'
        '<label id="choice">simulator <select id="simulator"></select></label></div>'
        f'<div class="grid two">{panels}</div>{raster}<p id="left-out" class="small"></p>'
    )
    commands = [f"<code>{escape(t.origin.command)}</code>" for _, t in named if t.origin.command]
    return section("settling", "Settling", body + (text.made(*commands) if commands else ""))


def agreement(run: Run) -> str:
    """How near firing rates come to rates."""
    if not run.agreements:
        words = ("simulate", run.path, "--on", "rate", "--phases", "--traces", run.path / "rate.h5")
        told = "To compare rates and spikes a trace of each is needed; this makes that of rates:"
        return section("agreement", "Agreement", missing(told, *words)) if run.spikes else ""
    body = (
        '<div class="controls"><label>phase <select id="phase"></select></label></div>'
        f'<div class="grid two">{chart("scatter", "Each point a unit in a sample", tall=True)}'
        f"<div>{text.updates_table(run)}</div></div>{text.agreement_table(run)}"
    )
    commands = [
        text.command("neuro-eqprop", "compare", run.path / run.rates[0], run.path / name)
        for name in run.agreements
        if run.rates
    ]
    return section("agreement", "Rates against spikes", body + text.made(*commands))


def simulators(run: Run) -> str:
    """The evaluations on the test set."""
    if not run.evaluations:
        told = "No evaluations yet; this makes one:"
        body = missing(told, "evaluate", run.path, "--on", "reference")
        return section("simulation", "Simulators", body)
    body = (
        "<p>Same answer: the share of samples where the largest pre-activation of the output is "
        "the same unit as in the network of rates. Spikes (or messages) are per neuron; synops, "
        "the synapses they reach, per sample. Click a heading to sort.</p>"
    )
    again = text.made(*text.evaluate_commands(run))
    return section("simulation", "Simulators", body + text.simulators_table(run) + again)


def energy(run: Run) -> str:
    """What it would cost in joules."""
    if not run.bills.chips:
        body = missing("No energy estimate yet; this makes one:", "energy", run.path)
        return section("joules", "Joules", body)
    places = (chart("chips", "Joules on each chip"), chart("terms", "Joules by term"))
    again = text.made(text.command("neuro-eqprop", "energy", run.path))
    return section("joules", "Joules", page_joules.body(run.bills, places) + again)


def headline(run: Run) -> list[tuple[str, str, str]]:
    """The joules among the headline numbers."""
    bill = page_joules.headline(run.bills)
    if bill is None or bill.total is None:
        return []
    note = f"estimate, {page_joules.spread(bill.total)}"
    note += f"; {len(bill.unknown)} terms unknown" if bill.unknown else ""
    value = text.quantity(bill.total.joules, "J")
    return [(value, f"an inference on {bill.profile}", note)]


def about(run: Run) -> str:
    """Settings, origins and notes."""
    settings = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>" for key, value in run.study.items()
    )
    origins = "".join(
        f"<li>{escape(name)}: {escape(trace.origin.backend)}, seed {trace.origin.seed}, network "
        f"{escape(trace.origin.network_hash[:12])}, {escape(versions(trace))}</li>"
        for name, trace in [*([run.rates] if run.rates else []), *run.spikes.items()]
    )
    body = f"<dl>{settings}</dl>" if settings else ""
    body += f'<p class="listed">Traces</p><ul>{origins}</ul>' if origins else ""
    body += text.listing("Left out", run.notes)
    return section("about", "Settings and sources", body) if body else ""


def versions(trace: Trace) -> str:
    """The packages a trace was made with."""
    return ", ".join(f"{name} {version}" for name, version in trace.origin.versions.items())
