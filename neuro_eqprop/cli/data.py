"""`neuro-eqprop data`: list data sets, download them, verify their files."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.cli.command import Command, Json, common, offer, print_facts


def options(parser: ArgumentParser) -> None:
    """Add the verbs `list`, `get` and `check`."""
    from neuro_eqprop.data.registry import DATASETS

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="every data set, its content and its folder")
    get = verbs.add_parser("get", help="download the files of a data set")
    offer(get.add_argument("name", metavar="NAME", help="a data set"), DATASETS)
    get.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="the parent folder (default: NEURO_EQPROP_DATA, or your cache)",
    )
    check = verbs.add_parser("check", help="read a data set and verify its files")
    action = check.add_argument(
        "name", metavar="NAME|FILE.npz", help="a data set, or your own file"
    )
    offer(action, DATASETS)
    for verb in (every, get, check):
        common(verb, SUPPRESS)


def run(args: Namespace) -> Json:
    """List, download or check."""
    if args.verb == "list":
        return {"datasets": listing()}
    return get(args.name, args.to) if args.verb == "get" else check(args.name)


def listing() -> list[Json]:
    """Every data set, none of them loaded."""
    from neuro_eqprop.data.registry import DATASETS, copy_of, missing, place

    return [
        {
            "name": entry.name,
            "place": place(entry),
            "what": entry.what,
            "shape": list(entry.shape),
            "classes": entry.classes,
            "train": entry.train,
            "test": entry.test,
            "missing": missing(entry),
            "note": copy_of(entry),
        }
        for entry in DATASETS.values()
    ]


def get(name: str, to: Path | None) -> Json:
    """Download the files of a data set, if it has any."""
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.data import DataError, missing
    from neuro_eqprop.data.paths import home
    from neuro_eqprop.data.registry import DATASETS

    entry = DATASETS.find(name)
    if not entry.files:
        if lacking := missing(entry):
            raise DataError(f"data set {name!r} {lacking}")
        return {"name": name, "folder": f"nothing to download: {entry.origin}", "files": []}
    from neuro_eqprop.io.dataset.fetch import fetch
    from neuro_eqprop.io.dataset.manifest import load_manifest

    folder, listed = (to or home()) / name, load_manifest(name)
    with bar(f"downloading {name}", sum(file.bytes for file in listed.files)) as advance:
        found = fetch(listed, folder, lambda file, more, _: advance(more, f"bytes, {file}"))
    files = [{"path": e.path, "address": e.address, "verdict": e.state} for e in found]
    return {"name": name, "folder": str(folder), "files": files}


def check(name: str) -> Json:
    """Compare the checksums of the files of a data set, then read it."""
    from neuro_eqprop import data
    from neuro_eqprop.io.dataset.verify import SAME, UNKNOWN, verify

    files, found = verify(name), data.load_data(name)
    return {
        "name": found.name,
        "train": len(found.train),
        "test": len(found.test),
        "features": found.features,
        "shape": list(found.shape),
        "classes": found.classes,
        "note": found.note,
        "files_as_in_manifest": [each.path for each in files if each.state == SAME],
        "files_without_checksum": [each.path for each in files if each.state == UNKNOWN],
        "files_of_a_copy": [each.path for each in files if each.state not in (SAME, UNKNOWN)],
    }


def shape(numbers: list[int]) -> str:
    """A shape as text: 1 x 28 x 28."""
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
    "the data sets",
    options,
    run,
    show,
    ("neuro-eqprop data list", "neuro-eqprop data check digits", "neuro-eqprop data get mnist"),
)
