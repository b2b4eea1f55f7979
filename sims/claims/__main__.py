"""Test the claims of the research notes, from the folder of the repository.

    python -m sims.claims list                        # every claim and its last verdict
    python -m sims.claims memory beta-optimum         # two of them, small budget
    python -m sims.claims --budget full --workers 2   # all: up to two hours on two cores
    python -m sims.claims paper --out manuscript      # LaTeX and figures of the confirmed claims
    python -m sims.claims data parity --out parity.npz

Options, output and exit codes are like those of `neuro-eqprop`.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    common,
    positive_float,
    positive_int,
)
from neuro_eqprop.cli.parsers import Parser
from neuro_eqprop.cli.program import attempt, exit_code_of
from neuro_eqprop.cli.progress import stages
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import save_npz
from sims.claims.check import DEADLINE, RESULTS, SHIPPED, WORKERS, check_claims, list_claims
from sims.claims.data import OWN, load
from sims.claims.definitions import IDS

PROGRAM = "python -m sims.claims"
COLORS = {"confirmed": "green", "refuted": "red", "undecided": "yellow", None: "dim"}
EPILOG = f"""\
claims: {", ".join(IDS)}
data sets: {", ".join(OWN)}

examples:
  {PROGRAM} list
  {PROGRAM} first-transformer --budget small
  {PROGRAM} data parity --out parity.npz"""


def options(parser: ArgumentParser) -> None:
    """Add the claims, the budget, the folders and the workers."""
    add = parser.add_argument
    meaning = "claims to test (all if none), or `list`, or `paper`, or `data NAME`"
    add("ids", nargs="*", metavar="ID", help=meaning)
    add("--budget", choices=("small", "full"), default="small", help="minutes, or up to two hours")
    out = f"folder of the results (default {RESULTS}), or what `paper` or `data` writes"
    add("--out", type=Path, metavar="PATH", help=out)
    results = f"for `list` and `paper`: results to read (default {RESULTS}, then {SHIPPED})"
    add("--results", type=Path, metavar="DIR", help=results)
    page = "the page of the verdicts (default OUT/claims.md)"
    add("--page", type=Path, metavar="FILE.md", help=page)
    add("--workers", type=positive_int, default=WORKERS, help="number of parallel processes")
    add("--scheduler", metavar="ADDRESS", help="Dask cluster (default: local workers)")
    add("--deadline", type=positive_float, default=DEADLINE, help="seconds for each cell")


def run(args: Namespace) -> Json:
    """Check claims, or do what the verb in their place says."""
    verb, *rest = args.ids or [None]
    if verb in {"list", "paper"} and rest:
        raise UsageError(f"{verb} takes no ID: it uses all claims")
    if verb == "list":
        return list_claims(args.results or args.out).to_json()
    if verb == "paper":
        return write_paper(args)
    if verb == "data":
        return write_data(rest, args.out)
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


def write_paper(args: Namespace) -> Json:
    """Write the files of a manuscript."""
    if args.out is None:
        raise UsageError("paper needs --out DIR for the files it writes")
    files = list_claims(args.results).write_paper(args.out)
    return {"out": str(args.out), "files": [str(path) for path in files]}


def write_data(names: list[str], out: Path | None) -> Json:
    """Write a data set of the claims as a file that `train --dataset` reads."""
    if len(names) != 1 or out is None or out.suffix != ".npz":
        raise UsageError(f"data needs one name of {', '.join(OWN)}, and --out FILE.npz")
    if names[0] not in OWN:
        raise UnknownNameError("data set", names[0], OWN)
    save_npz(load(names[0]), out)
    return {"out": str(out), "files": [str(out)]}


def show(outcome: Json, console: Console) -> None:
    """Print a row for each claim, or the files that were written."""
    if "files" in outcome:
        for name in outcome["files"]:
            console.print(escape(name))
        return
    table = Table("claim", "finding", "value", "95 % interval", "in short")
    for row in outcome["claims"]:
        finding, ends = row["finding"], row["interval"]
        color = COLORS[finding]
        table.add_row(
            row["id"],
            f"[{color}]{finding or 'not run'}[/{color}]",
            "" if row["value"] is None else f"{row['value']:.4g}",
            "" if ends is None else f"{ends[0]:.3g} .. {ends[1]:.3g}",
            escape(row["note"] or row["statement"]),
        )
    console.print(table)
    if "page" in outcome:
        console.print(f"page: {escape(outcome['page'])}")


COMMAND = Command("claims", options, run, show, examples=())


def claims_parser() -> Parser:
    """The parser of the command."""
    parser = Parser(prog=PROGRAM, description=__doc__.partition("\n")[0], epilog=EPILOG)
    common(parser, False)
    options(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; the exit codes are those of `neuro-eqprop`."""
    arguments = sys.argv[1:] if argv is None else argv
    return exit_code_of(lambda: attempt(COMMAND, claims_parser().parse_args(arguments), PROGRAM))


if __name__ == "__main__":
    sys.exit(main())
