"""`neuro-eqprop claims`: test the claims of the research notes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

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

COLOURS = {"confirmed": "green", "refuted": "red", "undecided": "yellow", None: "dim"}


def options(parser: ArgumentParser) -> None:
    """Add the claims, the budget, the folders and the workers."""
    from sims.claims.check import DEADLINE, RESULTS, SHIPPED, WORKERS
    from sims.claims.definitions import IDS

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
    add(
        "--workers",
        type=positive_int,
        default=WORKERS,
        help="number of parallel processes",
    )
    add("--scheduler", metavar="ADDRESS", help="Dask cluster (default: local workers)")
    add("--deadline", type=positive_float, default=DEADLINE, help="seconds for each cell")


def run(args: Namespace) -> Json:
    """List the claims, check them, or write the files of a manuscript."""
    from neuro_eqprop.cli.progress import stages
    from sims.claims.check import RESULTS, check_claims, list_claims

    verb = args.ids[0] if args.ids[:1] in (["list"], ["paper"]) else None
    if verb and len(args.ids) > 1:
        raise UsageError(f"claims {verb} takes no ID: it uses all claims")
    given = None if args.results is None else [args.results]
    if verb == "list":
        known = given or (None if args.out is None else [args.out])
        return list_claims(known).to_json()
    if verb == "paper":
        if args.out is None:
            raise UsageError("claims paper needs --out DIR for the files it writes")
        made = list_claims(given).write_paper(args.out)
        return {"out": str(args.out), "files": [str(path) for path in made]}
    with stages() as advance:
        return check_claims(
            args.ids,
            budget=args.budget,
            out=args.out or RESULTS,
            page=args.page,
            workers=args.workers,
            scheduler=args.scheduler,
            deadline=args.deadline,
            progress=lambda _, done, total: advance("claims", done, total),
        ).to_json()


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
    options,
    run,
    show,
    ("neuro-eqprop claims list", "neuro-eqprop claims first-transformer --budget small"),
)
