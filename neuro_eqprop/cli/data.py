"""`neuro-eqprop data`: the data sets, where they are and whether they are whole."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace

from rich.console import Console

from neuro_eqprop.cli.base import Command, Json, common, facts


def options(parser: ArgumentParser) -> None:
    """List them, or check one."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="every data set and where it is")
    check = verbs.add_parser("check", help="read one whole and tell what is in it")
    check.add_argument("name")
    for verb in (every, check):
        common(verb, SUPPRESS)


def run(args: Namespace) -> Json:
    """Look, or read."""
    from neuro_eqprop import data

    if args.verb == "list":
        places = data.summary()
        return {"datasets": [{"name": name, "place": place} for name, place in places.items()]}
    from neuro_eqprop.files.manifestfile import verify

    found = data.load(args.name)
    return {
        "name": found.name,
        "train": len(found.train),
        "test": len(found.test),
        "features": found.features,
        "classes": found.classes,
        "files_as_in_manifest": verify(args.name),
    }


def show(outcome: Json, console: Console) -> None:
    """Names and places, or what one holds."""
    if "datasets" in outcome:
        facts({each["name"]: each["place"] for each in outcome["datasets"]}, console)
        return
    files = outcome["files_as_in_manifest"]
    facts({**outcome, "files_as_in_manifest": "\n".join(files) or "embedded"}, console)


COMMAND = Command("data", "the data sets", options, run, show)
