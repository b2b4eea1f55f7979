"""LaTeX table and figures of the confirmed claims, for a manuscript.

`claims.tex` holds a table and a figure environment for each figure. Its comments give the keys of
the cells behind each number; `provenance.json` has the configurations of these cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuro_eqprop.files.write import write_bytes, write_text
from sims.claims.claim import Finding
from sims.claims.report import FIGURES, figure, number, table
from sims.claims.run import ClaimResult

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def escape(text: str) -> str:
    """Text with the special characters of LaTeX escaped."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def write(found: Sequence[ClaimResult], folder: Path) -> list[Path]:
    """Write `claims.tex`, the figures as PDF and SVG, `cells.csv` and `provenance.json`."""
    confirmed = [each for each in found if each.verdict.finding is Finding.CONFIRMED]
    if not confirmed:
        raise ValueError(
            "no claim is confirmed by the results that are known, so there is nothing to write; "
            "run `neuro-eqprop claims --budget small` first"
        )
    made, drawn = [], set()
    for each in confirmed:
        for form in ("pdf", "svg"):
            picture = figure(each, form)
            if picture is not None:
                path = folder / FIGURES / f"{each.claim.id}.{form}"
                write_bytes(path, picture)
                made.append(path)
                drawn.add(each.claim.id)
    write_text(folder / "claims.tex", "\n".join(latex(confirmed, drawn)) + "\n")
    write_text(folder / "cells.csv", table(confirmed))
    write_text(folder / "provenance.json", json.dumps(provenance(confirmed), indent=1) + "\n")
    return [*(folder / name for name in ("claims.tex", "cells.csv", "provenance.json")), *made]


def latex(confirmed: Sequence[ClaimResult], drawn: set[str]) -> Iterator[str]:
    """The lines of `claims.tex`."""
    yield "% Needs \\usepackage{graphicx}; every number is traced in provenance.json."
    yield "\\begin{table}"
    yield "  \\caption{Claims confirmed: the whole 95\\,\\% interval lies beyond the threshold.}"
    yield "  \\label{tab:claims}"
    yield "  \\begin{tabular}{p{0.4\\linewidth}rrr}"
    yield "    \\hline"
    yield "    claim & value & 95\\,\\% interval & seeds \\\\"
    yield "    \\hline"
    for each in confirmed:
        v = each.verdict
        ends = "" if v.interval is None else f"[{number(v.interval[0])}, {number(v.interval[1])}]"
        row = (escape(each.claim.statement), number(v.value), ends, str(v.seeds))
        yield f"    {' & '.join(row)} \\\\ % {each.claim.id}: {keys(each)}"
    yield "    \\hline"
    yield "  \\end{tabular}"
    yield "\\end{table}"
    for each in confirmed:
        if each.claim.id in drawn:
            yield from environment(each)


def environment(each: ClaimResult) -> Iterator[str]:
    """The lines of a figure environment."""
    caption = f"{each.claim.statement} {each.verdict.note} {each.claim.method_text(each.budget)}"
    yield ""
    yield f"% cells: {keys(each)}"
    yield "\\begin{figure}"
    yield "  \\centering"
    yield f"  \\includegraphics[width=\\linewidth]{{{FIGURES}/{each.claim.id}.pdf}}"
    yield f"  \\caption{{{escape(caption)}}}"
    yield f"  \\label{{fig:{each.claim.id}}}"
    yield "\\end{figure}"


def keys(each: ClaimResult) -> str:
    """The keys of the cells of a claim, shortened."""
    return " ".join(outcome.cell.key[:12] for outcome in each.results)


def provenance(confirmed: Sequence[ClaimResult]) -> dict[str, object]:
    """The configuration of every cell, by claim and key."""
    return {
        each.claim.id: {o.cell.key: o.cell.configuration() for o in each.results}
        for each in confirmed
    }
