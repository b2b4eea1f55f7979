"""Settings, provenance of the traces, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import DASH, listing
from neuro_eqprop.html_report.section import Section
from neuro_eqprop.traces.trace import Trace


def body(run: RunContents) -> str:
    """A part for each run."""
    return "".join(
        f'<div class="about"><h3>{escape(each.name)}</h3>{facts(each)}</div>' for each in run.runs
    )


def facts(run: RunContents) -> str:
    """Settings, traces and notes of a run."""
    used = {key: value for key, value in run.study.items() if is_used(key, value)}
    unused = {key: value for key, value in run.study.items() if key not in used}
    packages = dict.fromkeys(versions(trace) for _, trace in run.traces)
    traces = [
        f"{name}: {trace.origin.backend}, seed {trace.origin.seed}, network "
        f"{trace.origin.network_hash[:12] or DASH}"
        for name, trace in run.traces
    ] + [f"made with {each}" for each in packages]
    return (
        settings(used)
        + (
            f"<details><summary>{len(unused)} options that are off</summary>"
            f"{settings(unused)}</details>"
            if unused
            else ""
        )
        + listing("Traces", traces)
        + listing("Left out", run.notes)
    )


def is_used(key: str, value: object) -> bool:
    """Whether a setting does something: 0, false and nothing turn an option off."""
    return key == "seed" or bool(value)


def settings(given: Mapping[str, object]) -> str:
    """Settings as a list of names and values."""
    rows = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(str(value)) or DASH}</dd></div>"
        for key, value in given.items()
    )
    return f"<dl>{rows}</dl>" if rows else ""


def versions(trace: Trace) -> str:
    """Packages that a trace was made with."""
    return ", ".join(f"{name} {version}" for name, version in trace.origin.versions.items())


SECTION = Section("about", "Settings and sources", body)
