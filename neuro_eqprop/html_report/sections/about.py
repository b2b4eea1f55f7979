"""Settings, provenance of the traces, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import DASH, listing
from neuro_eqprop.html_report.section import Section, Shown


def show(run: RunContents) -> Shown:
    """A part for each run."""
    parts = (f"<h3>{escape(each.name)}</h3>{facts(each)}" for each in run.runs)
    return Shown("".join(f'<div class="about">{part}</div>' for part in parts))


def facts(run: RunContents) -> str:
    """Settings, traces and notes of a run; 0, false and nothing turn an option off."""
    used = {key: value for key, value in run.study.items() if value or key == "seed"}
    unused = {key: value for key, value in run.study.items() if key not in used}
    origins = [(name, trace.origin) for name, trace in run.traces]
    made = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in origin.versions.items())
        for _, origin in origins
    )
    traces = [
        f"{name}: {origin.backend}, seed {origin.seed}, network {origin.network_hash[:12] or DASH}"
        for name, origin in origins
    ]
    off = (
        f"<details><summary>{len(unused)} options that are off</summary>{settings(unused)}"
        "</details>"
    )
    return (
        settings(used)
        + (off if unused else "")
        + listing("Traces", [*traces, *(f"made with {versions}" for versions in made)])
        + listing("Left out", run.notes)
    )


def settings(given: Mapping[str, object]) -> str:
    """Settings as a list of names and values."""
    rows = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(str(value)) or DASH}</dd></div>"
        for key, value in given.items()
    )
    return f"<dl>{rows}</dl>" if rows else ""


SECTION = Section("about", "Settings and sources", show)
