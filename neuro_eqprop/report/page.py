"""One self-contained interactive HTML page from a run folder: no network, nothing to install."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from gzip import decompress
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from neuro_eqprop import __version__
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.report import energy as page_joules
from neuro_eqprop.report import multi_run
from neuro_eqprop.report import synapses as page_synapses
from neuro_eqprop.report import tables as text
from neuro_eqprop.report.charts import SMOOTH, Limits, charts
from neuro_eqprop.report.contents import RunContents, TraceView, read_contents

LARGEST = 420_000
"""Characters of chart data in a page; the chart library adds a million and a half."""


SCRIPTS = ("core", "learning", "settling", "synapses", "joules", "main")
"""The parts of the page's own script, in their order."""


def page(path: Path, traces: Mapping[str, Trace], *, notes: Sequence[str] = ()) -> str:
    """The report of the run folder `path`, whose traces come read, by the names of their files."""
    return page_of(read_contents(path, traces, notes))


def page_of(run: RunContents) -> str:
    """The report of a run, and of those beside it."""
    scripts = {"library": library(), "script": own_script()}
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
        tiles=text.tiles(run, [] if run.others else headline(run)),
        sections="\n".join(sections(run)),
        data=embed(run),
        version=escape(__version__),
        path=escape(shlex.join(str(each.path) for each in run.runs)),
    )


def resource(name: str) -> str:
    """A file beside this one."""
    return (
        files("neuro_eqprop.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")
    )


def own_script() -> str:
    """The script of the page, with names that stay its own."""
    parts = "\n".join(resource(f"script/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def library() -> str:
    """The chart library with the charts that have axes; see `plotly/LICENSE`."""
    packed = (
        files("neuro_eqprop.report")
        .joinpath("assets")
        .joinpath("plotly/plotly-cartesian.min.js.gz")
    )
    # Only inside of strings and patterns, where the added backslash means nothing.
    return decompress(packed.read_bytes()).decode().replace("</script", "<\\/script")


def digest(script: str) -> str:
    """What a content security policy knows a script by."""
    return b64encode(sha256(script.encode()).digest()).decode()


def title_of(run: RunContents) -> str:
    """The data and the model, or the folder's name; the folders' names, if there are several."""
    if run.others:
        return " · ".join(each.name for each in run.runs)
    parts = [run.setting("dataset"), run.setting("model")]
    return " · ".join(str(part) for part in parts if part) or run.path.resolve().name


def embed(run: RunContents) -> str:
    """The chart data as JSON that cannot end the element it stands in; fewer samples if too big."""
    limits = Limits()
    while True:
        told = json.dumps(charts(run, limits), separators=(",", ":"), allow_nan=False)
        if len(told) <= LARGEST or limits == limits.smaller():
            return told.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        limits = limits.smaller()


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


def sections(run: RunContents) -> list[str]:
    """All parts of the page, in their order."""
    parts = [
        side_by_side(run),
        learning(run),
        settling(run),
        synapses(run),
        agreement(run),
        simulators(run),
        energy(run),
        *(about(each) for each in run.runs),
    ]
    return [part for part in parts if part]


def side_by_side(run: RunContents) -> str:
    """The runs in a table, if there are several."""
    if not run.others:
        return ""
    return section("runs", "Side by side", text.runs_table(run, [headline(r) for r in run.runs]))


def missing(what: str, *words: object) -> str:
    """What stands where there is nothing to show yet."""
    return f'<p class="missing">{escape(what)} {text.command("neuro-eqprop", *words)}</p>'


def learning(run: RunContents) -> str:
    """Curves over the epochs."""
    again = [text.learn_command(each) for each in run.runs if each.metrics]
    if not any(each.metrics for each in run.runs):
        body = missing("No training was recorded here; this trains:", "train", "--out", run.path)
        return section("learning", "Learning", body)
    places = {
        "settle_steps": ("settle", "Steps to settle"),
        "spectral": ("spectral", "Spectral norms of the weights"),
    }
    curves = chart("accuracy", "Accuracy over epochs") + "".join(
        chart(*place)
        for key, place in places.items()
        if any(row.get(key) for each in run.runs for row in each.metrics)
    )
    body = (
        "<p>For every sample the network settles freely and then again with its output nudged; "
        "each weight changes by what the units at its two ends did differently.</p>"
        f'<div class="grid three">{curves}</div>'
    )
    return section("learning", "Learning", body + text.made(*again))


def settling(run: RunContents) -> str:
    """Rates and firing rates on their way to equilibrium, and the spikes."""
    views = [view for view in run.views() if view.trace.layers_with_rates]
    if not views and run.traces:
        return ""
    if not views:
        words = ("simulate", run.path, "--on", "reference", "--traces", run.path / "traces.h5")
        return section("settling", "Settling", missing("No traces yet; this records some:", *words))
    spiking = any(view.spikes for view in views)
    left = len(views) > 1 or not spiking
    right = len(views) > 1 or spiking
    panels = chart("rates", "Rates", tall=True) if left else ""
    panels += chart("firing", "Firing rates", tall=True) if right else ""
    raster = chart("raster", "Spikes", tall=True) if spiking else ""
    choices = '<label>left <select id="left"></select></label>' if left else ""
    choices += '<label id="choice">right <select id="simulator"></select></label>' if right else ""
    what = (
        "The same sample at moments of the learning: how its rates settle. "
        if run.moments
        else "The same sample twice: the rates as they are solved for, and the firing rates, which "
        f"are the mean of the spikes over the last part of the phase so far (at least {SMOOTH} "
        "steps), or what messages add up to. "
    )
    body = (
        f"<p>{what}A line is a unit and keeps its colour. The thick one is the right answer. Bands "
        "are the phases: free, then pulled away from the answer and towards it.</p>"
        '<div class="controls"><canvas id="image" width="32" height="32" hidden></canvas>'
        '<label class="grow"><span id="which">sample</span>'
        '<input type="range" id="sample" min="0" value="0" step="1"></label>'
        '<label class="grow"><span id="part">all phases</span>'
        '<input type="range" id="zoom" min="0" max="0" value="0" step="1"></label>'
        '<span class="line"></span>'
        f'<label>layer <select id="layer"></select></label>{choices}</div>'
        f'<div class="grid two">{panels}</div>{raster}<p id="left-out" class="small"></p>'
    )
    return section("settling", "Settling", body + recorded_by(views))


def recorded_by(views: Sequence[TraceView]) -> str:
    """The commands that recorded traces."""
    told = dict.fromkeys(view.trace.origin.command for view in views if view.trace.origin.command)
    return text.made(*(f"<code>{escape(command)}</code>" for command in told)) if told else ""


def synapses(run: RunContents) -> str:
    """A weight matrix, and the story of the synapse that is chosen in it."""
    traces = dict(run.traces)
    if not any(page_synapses.matrices(trace) for trace in traces.values()):
        return ""
    body = (
        "<p>Click a weight to see what its synapse did in the sample: the traces of activity "
        "before and behind it (ticks are spikes), their product, the tag that gathers the product "
        "with opposite signs in the two nudged phases, and the weight. What the tag holds at the "
        "end is the change that the sample asks for.</p>"
        '<div class="controls"><label>weights <select id="connection"></select></label>'
        '<label>show <select id="view"></select></label>'
        '<label>from unit <input type="number" id="from" min="0" value="0"></label>'
        '<label>to unit <input type="number" id="to" min="0" value="0"></label>'
        '<label class="grow"><span id="which-again">sample</span><input type="range" '
        'id="sample-again" min="0" value="0" step="1"></label></div>'
        f'<div class="grid two story"><div>{chart("matrix", "Weights")}'
        '<p id="matrix-said" class="small"></p><ul id="story-said" aria-live="polite"></ul>'
        '<p id="story-none" class="small" hidden>What this synapse did is not in the page: choose '
        "one in the matrix.</p></div>"
        f"{chart('story', 'The story of a synapse', tall=True)}</div>"
    )
    views = [view for view in run.views() if view.place == 0 and view.trace.weights]
    return section("synapses", "Synapses", body + recorded_by(views))


def agreement(run: RunContents) -> str:
    """How near firing rates come to rates."""
    compared = [view for view in run.views() if view.name in view.run.agreements]
    if not compared:
        words = ("simulate", run.path, "--on", "rate", "--phases", "--traces", run.path / "rate.h5")
        told = "To compare rates and spikes a trace of each is needed; this makes that of rates:"
        return section("agreement", "Agreement", missing(told, *words)) if run.spikes else ""
    body = (
        '<div class="controls"><label>phase <select id="phase"></select></label></div>'
        f'<div class="grid two">{chart("scatter", "Each point a unit in a sample", tall=True)}'
        f"<div>{text.updates_table(compared)}</div></div>{text.agreement_table(compared)}"
    )
    commands = [
        text.command("neuro-eqprop", "compare", view.run.path / view.run.rates[0], view.path)
        for view in compared
        if view.run.rates
    ]
    return section("agreement", "Rates against spikes", body + text.made(*commands))


def simulators(run: RunContents) -> str:
    """The evaluations on the test set."""
    if not any(each.evaluations for each in run.runs):
        told = "No evaluations yet; this makes one:"
        body = missing(told, "evaluate", run.path, "--on", "reference")
        return section("simulation", "Simulators", body)
    body = (
        "<p>Same answer: the share of samples where the largest pre-activation of the output is "
        "the same unit as in the network of rates. Spikes (or messages) are per neuron; synops, "
        "the synapses they reach, per sample. Click a heading to sort.</p>"
    )
    again = text.made(*(words for each in run.runs for words in text.evaluate_commands(each)))
    return section("simulation", "Simulators", body + text.simulators_table(run) + again)


def energy(run: RunContents) -> str:
    """What it would cost in joules."""
    if not run.bills.chips:
        body = missing("No energy estimate yet; this makes one:", "energy", run.path)
        return section("joules", "Joules", body)
    places = (
        chart("chips", "Joules on each chip"),
        chart("terms", "Joules by term"),
        chart("trade", "Accuracy against joules", tall=True),
    )
    again = text.made(text.energy_command(run))
    several = multi_run.beside([(each.name, each.bills) for each in run.runs])
    return section("joules", "Joules", page_joules.body(run.bills, places) + several + again)


def headline(run: RunContents) -> list[tuple[str, str, str]]:
    """The joules among the headline numbers."""
    bill = page_joules.headline(run.bills)
    if bill is None or bill.total is None:
        return []
    note = f"estimate, {page_joules.spread(bill.total)}"
    note += f"; {len(bill.unknown)} terms unknown" if bill.unknown else ""
    value = text.quantity(bill.total.joules, "J")
    return [(value, f"an inference on {bill.profile}", note)]


def about(run: RunContents) -> str:
    """Settings, origins and notes."""
    settings = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(str(value)) or text.DASH}</dd></div>"
        for key, value in run.study.items()
    )
    made_with = dict.fromkeys(versions(trace) for _, trace in run.traces)
    origins = "".join(
        f"<li>{escape(name)}: {escape(trace.origin.backend)}, seed {trace.origin.seed}, network "
        f"{escape(trace.origin.network_hash[:12] or text.DASH)}</li>"
        for name, trace in run.traces
    ) + "".join(f"<li>made with {escape(packages)}</li>" for packages in made_with)
    body = f"<dl>{settings}</dl>" if settings else ""
    body += f'<p class="listed">Traces</p><ul>{origins}</ul>' if origins else ""
    body += text.listing("Left out", run.notes)
    title = "Settings and sources"
    return f'<section class="about"><h2>{escape(title)}: {escape(run.name)}</h2>{body}</section>'


def versions(trace: Trace) -> str:
    """The packages a trace was made with."""
    return ", ".join(f"{name} {version}" for name, version in trace.origin.versions.items())
