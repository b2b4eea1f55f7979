"""`neuro-eqprop traces`: show, watch, verify and export trace files."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape

import neuro_eqprop as ne
from neuro_eqprop.cli.command import Command, Json, positive_float
from neuro_eqprop.html_report.live import serve
from neuro_eqprop.traces.audit import audit
from neuro_eqprop.traces.export import refuse_existing
from neuro_eqprop.traces.lazy import read, read_progress
from neuro_eqprop.traces.summary import parts, population_summaries

if TYPE_CHECKING:
    from rich.tree import Tree

    from neuro_eqprop.traces.lazy import TraceProgress
    from neuro_eqprop.traces.trace import Trace

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 40
"""Length of a sparkline in characters."""


def options(parser: ArgumentParser) -> None:
    """Add the action, the file and the export formats."""
    meaning = (
        "print its contents, follow it while it is written, compute its recorded products, tags "
        "and updates again, or convert it"
    )
    parser.add_argument("action", choices=["show", "watch", "verify", "export"], help=meaning)
    parser.add_argument("file", type=Path, metavar="FILE.h5", help="a trace file")
    meaning = "traces watch: seconds without a file or new samples after which to give up"
    parser.add_argument("--patience", type=positive_float, default=60.0, metavar="S", help=meaning)
    meaning = "traces watch: show it in a browser too, on this machine alone"
    parser.add_argument("--web", action="store_true", help=meaning)
    meaning = "with --web: port of the page (default 0: any free one)"
    parser.add_argument("--port", type=int, default=0, metavar="N", help=meaning)
    parser.add_argument(
        "--npz",
        type=Path,
        metavar="OUT.npz",
        help="export: as a NumPy archive (default: not written)",
    )
    parser.add_argument(
        "--csv",
        type=Path,
        metavar="DIR",
        help="export: as tables into a new folder (default: not written)",
    )
    meaning = "export: for neuroscience tools, Neurodata Without Borders (default: not written)"
    parser.add_argument("--nwb", type=Path, metavar="OUT.nwb", help=meaning)
    meaning = "with --nwb: duration of a step in seconds (default: as recorded)"
    parser.add_argument("--dt", type=positive_float, default=None, metavar="S", help=meaning)


def run(args: Namespace) -> Json:
    """Summarise, follow or export the trace."""
    if args.action == "verify":
        found = [each.to_json() for each in audit(read(args.file))]
        return {"file": str(args.file), "verified": found}
    if args.action == "watch":
        with web_view(args):
            watch(args.file, patience=args.patience)
    if args.action != "export":
        return ne.trace_summary(args.file)
    return {"file": str(args.file), "made": [str(path) for path in export(args)]}


@contextmanager
def web_view(args: Namespace) -> Iterator[None]:
    """Serve a live view of the trace in a context, if `--web` is given."""
    if not args.web:
        yield
        return

    with serve(args.file, port=args.port) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        sys.stderr.write(f"live view: {server.address}\n")
        try:
            yield
            if sys.stderr.isatty():
                # Keep serving, so that the page of a short or finished run can be opened.
                sys.stderr.write("the page stays until you press Ctrl-C\n")
                with suppress(KeyboardInterrupt):
                    Event().wait()
        finally:
            server.shutdown()


def export(args: Namespace) -> list[Path]:
    """Write the trace in each requested format."""
    targets = [path for path in (args.npz, args.csv, args.nwb) if path is not None]
    if not targets:
        raise ValueError("no output given: use --npz OUT.npz, --csv DIR or --nwb OUT.nwb")
    for path in targets:
        refuse_existing(path)
    trace = read(args.file)
    made: list[Path] = []
    if args.npz is not None:
        made.append(trace.to_npz(args.npz))
    if args.csv is not None:
        made += trace.to_csv(args.csv)
    if args.nwb is not None:
        made.append(trace.to_nwb(args.nwb, dt=args.dt))
    return made


def watch(path: Path, *, patience: float) -> None:
    """Follow a trace until it is complete, with a live view on standard error."""
    from rich.live import Live

    began = time.monotonic()
    first = held = -1
    with Live(console=Console(stderr=True), refresh_per_second=4) as live:
        while not path.exists() and time.monotonic() - began < patience:
            live.update(escape(f"waiting for {path}"))
            time.sleep(0.1)
        began = grown = time.monotonic()
        while True:
            seen, now = read_progress(path, last=8), time.monotonic()
            far = seen.taken + epochs_of(seen.trace)
            first = seen.taken if first < 0 else first
            grown, held = (now, far) if far > held else (grown, held)
            pace = (seen.taken - first) / (now - began) if now > began else 0.0
            live.update(escape("\n".join(picture(path, seen, pace, now - grown))))
            if seen.trace.complete:
                return
            if now - grown > patience:
                raise RuntimeError(
                    f"{path} has not grown for {patience:g} s: its run may have stopped"
                )
            time.sleep(0.25)


def epochs_of(trace: Trace) -> int:
    """Return the number of finished training epochs."""
    return len(trace.epochs.get("epoch", ()))


def time_left(seen: TraceProgress, pace: float, waited: float) -> float | None:
    """Estimate the remaining seconds, from epochs for a training, otherwise from samples."""
    done = epochs_of(seen.trace)
    if seen.epochs:
        each = float(np.mean(seen.trace.epochs["seconds"][-5:])) if done else None
        return None if each is None else max(0.0, (seen.epochs - done) * each - waited)
    return (seen.announced - seen.taken) / pace if pace and seen.taken < seen.announced else None


def picture(path: Path, seen: TraceProgress, pace: float, waited: float) -> list[str]:
    """Return the lines of the live view: progress, metrics, and rates of the last samples.

    `pace` is in samples per second; `waited` is the time since the last sample in seconds.
    """
    trace, left = seen.trace, time_left(seen, pace, waited)
    progress = f"{seen.taken} of {seen.announced} samples"
    if seen.epochs:
        progress += f", {epochs_of(trace)} of {seen.epochs} epochs"
    lines = [f"{path}: {progress}" + ("" if left is None else f", {left:.0f} s left")]
    if epochs_of(trace):
        last = {name: values[-1] for name, values in trace.epochs.items()}
        accuracy = trace.epochs.get("test_accuracy", np.zeros(0)).tolist()
        lines.append(
            f"{'epoch':>12} {sparkline(accuracy[-WIDTH:])} {last.pop('epoch'):.0f}: "
            + ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in last.items())
        )
    for each in population_summaries(trace):
        rates = ", ".join(f"{n} {0.0 if r is None else r:.4f}" for n, r in each["rate"].items())
        sent = "" if each["events"] is None else f"; {each['events']} spikes"
        lines.append(f"{each['population']:>12} {sparkline(each['course'])} {rates}{sent}")
    for name, log in trace.hebbian.items():
        weight = log.weight[:, 0].tolist() if len(log.weight) else []
        if weight:
            target, source = log.synapses[0]
            course = sparkline([float(part.mean()) for part in parts(np.array(weight))])
            lines.append(f"{'weight':>12} {course} {weight[-1]:+.4f}, {name}[{target},{source}]")
    return lines


def sparkline(values: list[float | None]) -> str:
    """Draw bars scaled from the lowest to the highest value; None is a space."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if v is None else BARS[round((v - low) * scale)] for v in values)


def show(outcome: Json, console: Console) -> None:
    """Print the exported files, or the contents as a tree."""
    if "verified" in outcome:
        show_audit(outcome["verified"], console)
        return
    if "made" in outcome:
        for path in outcome["made"]:
            console.print(f"wrote {escape(path)}")
        return
    from rich.tree import Tree

    state = (
        "complete" if outcome["complete"] else "not complete: still being written, or interrupted"
    )
    origin = outcome["origin"]
    tree = Tree(
        f"[bold]{escape(outcome['file'])}[/bold]  schema {outcome['schema']}, "
        f"{outcome['samples']} samples of {outcome['steps']} steps, {state}"
    )
    tree.add(
        f"from {escape(origin['backend'])}, seed {origin['seed']}, {escape(origin['created'])}"
    )
    if origin["command"]:
        tree.add(f"made by [italic]{escape(origin['command'])}[/italic]")
    phases = tree.add("phases")
    for phase in outcome["phases"]:
        measured = f"rates over the last {phase['window']}"
        phases.add(
            f"{escape(phase['name'])}: beta {phase['beta']:g}, {phase['steps']} steps, {measured}"
        )
    populations = tree.add("populations")
    for each in outcome["populations"]:
        rates = ", ".join(
            f"{escape(phase)} {'-' if rate is None else format(rate, '.4f')}"
            for phase, rate in each["rate"].items()
        )
        events = "" if each["events"] is None else f", {each['events']} events"
        node = populations.add(
            f"[bold]{escape(each['population'])}[/bold] ({each['kind']}): "
            f"{each['units']} units{events}"
        )
        node.add(f"{sparkline(each['course'])}  mean rate over the steps")
        node.add(f"mean rate: {rates}")
    show_statistics(outcome, tree)
    for name, synapses in outcome["watched"].items():
        listed = ", ".join(f"{source} to {target}" for target, source in synapses)
        tree.add(f"recorded synapses of {escape(name)}, by unit: {listed}")
    if outcome["epochs"]:
        accuracy = outcome["epochs"].get("test_accuracy", [])
        epochs = "1 epoch" if len(accuracy) == 1 else f"{len(accuracy)} epochs"
        tree.add(f"{epochs} of training: {sparkline(accuracy)} test accuracy")
    sets = tree.add("data sets")
    for each in outcome["data"]:
        shape = " x ".join(str(n) for n in each["shape"]) or "one value"
        sets.add(f"{escape(each['name'])}  {shape}  [{escape(each['unit'])}]".replace("[", "\\["))
    console.print(tree)


def show_audit(found: list[Json], console: Console) -> None:
    """Print the largest differences of the records of each connection."""
    if not found:
        console.print("no synapses were recorded: use `--record 'hidden->output:hebbian'`")
    for each in found:
        updates = f"updates of {each['commits']} commits {each['update']:.1e}"
        console.print(
            f"{each['connection']}, {each['synapses']} synapses, largest differences: products "
            f"{each['product']:.1e}, tags {each['tag']:.1e}"
            + (f", {updates}" if each["commits"] else ""),
            markup=False,
        )


def show_statistics(outcome: Json, tree: Tree) -> None:
    """Add the spike statistics of each layer and phase to the tree."""
    if not outcome["spike_statistics"]:
        return
    step = f"{outcome['step_seconds'] * 1e3:g} ms"
    by = outcome["spike_statistics"][0]["computed_by"]
    statistics = tree.add(f"spike statistics by {escape(by)}; a step takes {step}")
    names = {"isi_cv": "ISI CV", "fano_factor": "Fano factor"}
    names |= {"noise_correlation": "noise correlation"}
    names |= {"signal_correlation": "signal correlation", "balance": "I/E"}
    for each in outcome["spike_statistics"]:
        shown = [f"{text} {each[n]:.3f}" for n, text in names.items() if each[n] is not None]
        head = f"{escape(each['layer'])}, {escape(each['phase'])}: {each['mean_rate']:.1f} Hz"
        statistics.add(", ".join([head, *shown]))


COMMAND = Command(
    "traces",
    options,
    run,
    show,
    (
        "neuro-eqprop traces show spikes.h5",
        "neuro-eqprop traces watch spikes.h5",
        "neuro-eqprop traces verify spikes.h5",
        "neuro-eqprop traces export spikes.h5 --nwb spikes.nwb --csv spikes",
    ),
)
