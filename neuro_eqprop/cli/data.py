"""`neuro-eqprop data`: list data sets, download them, verify their files."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import Command, Json, common, print_facts, set_completions
from neuro_eqprop.cli.progress import stages
from neuro_eqprop.data.registry import DATASETS
from neuro_eqprop.files.codec import to_json


def options(parser: ArgumentParser) -> None:
    """Add the verbs `list`, `get` and `check`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="every data set, its content and its folder")
    get = verbs.add_parser("get", help="download the files of a data set")
    names = ", ".join(DATASETS)
    set_completions(get.add_argument("name", metavar="NAME", help=f"a data set: {names}"), DATASETS)
    get.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="the parent folder (default: NEURO_EQPROP_DATA, or your cache)",
    )
    check = verbs.add_parser("check", help="read a data set and verify its files")
    action = check.add_argument(
        "name", metavar="NAME|FILE.npz", help=f"your own file, or a data set: {names}"
    )
    set_completions(action, DATASETS)
    for verb in (every, get, check):
        common(verb, SUPPRESS)


def run(args: Namespace) -> Json:
    """List, download or check."""
    if args.verb == "list":
        return {"datasets": to_json(ne.list_data())}
    if args.verb == "check":
        return dict(to_json(ne.check_data(args.name)))
    with stages() as advance:
        bar = partial(advance, f"downloading {args.name}")
        return dict(to_json(ne.download_data(args.name, args.to, progress=bar)))


def shape(numbers: list[int]) -> str:
    """Format a shape, as 1 x 28 x 28."""
    return " x ".join(str(n) for n in numbers)


def show(outcome: Json, console: Console) -> None:
    """Print the list, the downloaded files, or the sizes of a data set."""
    if "datasets" in outcome:
        show_list(outcome["datasets"], console)
    elif "folder" in outcome:
        files = {
            Path(each["path"]).name: f"{each['address'] or 'already there'}: {each['verdict']}"
            for each in outcome["files"]
        }
        print_facts({outcome["name"]: outcome["folder"]} | files, console)
    else:
        show_check(outcome, console)


def show_list(datasets: list[Json], console: Console) -> None:
    """Print a table, and below it how to get what is missing."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("name", "what", "shape", "classes", "train", "test", "place"):
        right = title in {"classes", "train", "test"}
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for each in datasets:
        counts = (str(each[key]) for key in ("classes", "train", "test"))
        table.add_row(each["name"], each["what"], shape(each["shape"]), *counts, each["place"])
    console.print(table)
    for each in datasets:
        if remark := each["missing"] or each["note"]:
            console.print(f"{each['name']}: {remark}", markup=False)


def show_check(outcome: Json, console: Console) -> None:
    """Print the sizes of a data set and the results of its checksums."""
    rows = dict(outcome) | {"shape": shape(outcome["shape"])}
    if outcome["files_of_a_copy"]:
        rows |= {"files_as_in_manifest": "", "files_without_checksum": ""}
        rows["files_of_a_copy"] = "\n".join(outcome["files_of_a_copy"])
    elif outcome["files_as_in_manifest"] or outcome["files_without_checksum"]:
        for key in ("files_as_in_manifest", "files_without_checksum"):
            rows[key] = "\n".join(outcome[key]) or "none"
        rows["files_of_a_copy"] = ""
    else:
        rows = {key: value for key, value in rows.items() if not key.startswith("files_")}
    print_facts({key: value for key, value in rows.items() if value != ""}, console)


COMMAND = Command(
    "data",
    options,
    run,
    show,
    ("neuro-eqprop data list", "neuro-eqprop data check digits", "neuro-eqprop data get mnist"),
)
