"""`neuro-eqprop claims`: the claims of the research notes, tested."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    offer,
    positive_float,
    positive_int,
)

if TYPE_CHECKING:
    from neuro_eqprop.claims.claim import CellResult, Claim

RESULTS = Path("claims-results")
SHIPPED = Path("results/claims")
"""Where the results of the published page are kept."""
DEADLINE = 1800.0
COLOURS = {"confirmed": "green", "refuted": "red", "undecided": "yellow", None: "dim"}


def options(parser: ArgumentParser) -> None:
    """Add the claims, the budget, the folders and the workers."""
    from neuro_eqprop.claims.definitions import IDS

    add = parser.add_argument
    meaning = "claims to test (all if none), or `list`, or `paper`"
    offer(add("ids", nargs="*", metavar="ID", help=meaning), ("list", "paper", *IDS))
    add("--budget", choices=("small", "full"), default="small", help="minutes, or up to two hours")
    out = f"folder of the results, or of the files of `paper` (default {RESULTS})"
    add("--out", type=Path, metavar="DIR", help=out)
    results = f"for `list` and `paper`: results to read (default {RESULTS}, then {SHIPPED})"
    add("--results", type=Path, metavar="DIR", help=results)
    page = "the page of the verdicts (default OUT/claims.md)"
    add("--page", type=Path, metavar="FILE.md", help=page)
    cores = min(4, os.cpu_count() or 1)
    add(
        "--workers",
        type=positive_int,
        default=cores,
        help="number of parallel processes",
    )
    add("--scheduler", metavar="ADDRESS", help="Dask cluster (default: local workers)")
    add("--deadline", type=positive_float, default=DEADLINE, help="seconds for each cell")


def run(args: Namespace) -> Json:
    """List the claims, test them, or write the files of a manuscript."""
    from neuro_eqprop.claims.definitions import claims

    if args.ids[:1] in (["list"], ["paper"]):
        if len(args.ids) > 1:
            raise UsageError(f"claims {args.ids[0]} takes no claim, but all that are known")
        return listing(args) if args.ids == ["list"] else manuscript(args)
    return test(args, claims(args.ids))


def folders(args: Namespace, given: Path | None) -> list[Path]:
    """The folders that are searched for results, in this order."""
    if args.results is not None:
        return [args.results]
    return [given] if given is not None else [RESULTS, SHIPPED]


def listing(args: Namespace) -> Json:
    """Every claim with its last known result."""
    from neuro_eqprop.claims.definitions import claims
    from neuro_eqprop.claims.report import as_json
    from neuro_eqprop.claims.run import best_known_result

    rows: list[Json] = []
    for claim in claims():
        found = best_known_result(claim, folders(args, args.out))
        nothing: Json = dict.fromkeys(("finding", "value", "interval", "seeds", "note"))
        result = nothing if found is None else as_json(found)
        rows.append(
            {**result, "id": claim.id, "statement": claim.statement, "source": claim.source}
        )
    return {"claims": rows}


def manuscript(args: Namespace) -> Json:
    """Write LaTeX and figures of the confirmed claims."""
    from neuro_eqprop.claims import latex
    from neuro_eqprop.claims.definitions import claims
    from neuro_eqprop.claims.run import best_known_result

    if args.out is None:
        raise UsageError("claims paper needs --out DIR for the files it writes")
    found = [best_known_result(claim, folders(args, None)) for claim in claims()]
    made = latex.write([each for each in found if each is not None], args.out)
    return {"out": str(args.out), "files": [str(path) for path in made]}


def test(args: Namespace, chosen: Sequence[Claim]) -> Json:
    """Run the missing cells, conclude, and write the page."""
    from neuro_eqprop.claims import report
    from neuro_eqprop.claims.claim import Budget
    from neuro_eqprop.claims.definitions import claims
    from neuro_eqprop.claims.run import claim_result, pending, run_claims
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.executors import make_executor

    budget, out = Budget(args.budget), args.out or RESULTS
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out names a folder for the results")
    with bar(f"claims, {budget.value} budget", len(pending(chosen, budget, out))) as advance:

        def show_cell(outcome: CellResult) -> None:
            advance(1, f"cells, {outcome.cell.function}")

        executor = make_executor(
            "local" if args.scheduler is None else "dask",
            workers=args.workers,
            scheduler=args.scheduler,
        )
        found = run_claims(
            chosen, budget, out, executor=executor, deadline=args.deadline, on_cell=show_cell
        )
    everything = [claim_result(claim, budget, out) for claim in claims()]
    page = args.page or out / "claims.md"
    command = f"neuro-eqprop claims --budget {budget.value}"
    report.write([e for e in everything if e is not None], out, page=page, command=command)
    return {
        "budget": budget.value,
        "out": str(out),
        "page": str(page),
        "claims": [report.as_json(each) for each in found],
    }


def show(outcome: Json, console: Console) -> None:
    """Print a row for each claim."""
    if "files" in outcome:
        for name in outcome["files"]:
            console.print(escape(name))
        return
    table = Table("claim", "finding", "value", "95 % interval", "in short")
    for row in outcome["claims"]:
        finding, ends = row["finding"], row["interval"]
        colour = COLOURS[finding]
        table.add_row(
            row["id"],
            f"[{colour}]{finding or 'not run'}[/{colour}]",
            "" if row["value"] is None else f"{row['value']:.4g}",
            "" if ends is None else f"{ends[0]:.3g} .. {ends[1]:.3g}",
            escape(row["note"] or row["statement"]),
        )
    console.print(table)
    if "page" in outcome:
        console.print(f"page: {escape(outcome['page'])}")


COMMAND = Command(
    "claims",
    "test the claims of the research notes",
    options,
    run,
    show,
    ("neuro-eqprop claims list", "neuro-eqprop claims first-transformer --budget small"),
)
