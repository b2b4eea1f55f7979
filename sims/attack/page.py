"""The page of what was tried and what held, from the outputs of `fuzz.py` and `harness.py`.

    python sims/attack/page.py --fuzz fuzz.jsonl ... --harness harness.jsonl

Both files hold a JSON object a line: what `fuzz.py` writes to standard error or to the file of
ATTACK_ROWS, and the outputs of `harness.py`. Rows of the same reader are added up.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from neuro_eqprop.files.read import json_lines
from neuro_eqprop.files.write import write_text

PAGE = Path(__file__).parents[2] / "docs" / "results" / "attacks.md"
BAD = ("untyped", "hang", "crash")
WHAT = {
    "kills": "kills of trainings, learning and sweeps, with and without traces (SIGKILL, SIGTERM): "
    "files readable, resumed to the same bytes, all epochs in the trace",
    "disks": "full disks while a trace is written: nothing complete with wrong data, no crash",
    "parents": "kills of parents (Lava, claims, sweeps, workers, readers of traces): all processes "
    "below them gone within 5 s",
    "signals": "SIGTERM and SIGINT to commands: exit code 143 or 130 within 5 s, the run is intact",
    "writers": "processes that train into one folder, five at a time: one consistent run is left",
    "links": "links planted at a name that a command may write (18 commands, 26 names; to a file, "
    "a folder and a name of others): none followed",
    "force": "`--force` into a home, a link to it, a run and a folder with files (8 commands): "
    "files of others kept",
    "locks": "locks won by four processes without `flock`, some of them left by an ended process: "
    "held by one process at a time",
    "caches": "damaged compiled code on disk (flipped, cut, emptied, removed): the same results",
    "traps": "commands in a folder of traps under strace: nothing opened there that was not named, "
    "no code of it run",
    "full": "a disk that is full during each of 18 commands: one sentence, nothing half written",
    "soak": "evaluations in one process: no growth of memory, files or processes",
}
HEAD = """# Attacks: what was tried, and what held

Damaged files, kills, full disks and concurrent writers: how often each was tried, and how often the
program behaved as required. [What is trusted, and what is not](../explanation/threats.md) describes
the protection. Made by `sims/attack/page.py` from the outputs of `sims/attack/fuzz.py` and
`sims/attack/harness.py`, which say how to repeat them.

## Mutated files

Each file is a valid one with one to three mutations: flipped bits, cut or extended, blocks blanked
or copied, numbers and strings replaced, lines dropped, brackets nested. Half of the NIR files are
sealed again, half of the models lose their digest. A reader must return, or raise an error that
names the file.

All rows come from one run over all readers with one version of the code. The tests write them:

    ATTACK_ROWS=rows.jsonl python -m pytest tests/attack

Other mutators found faults that this one does not find. [Known faults](faults.md) names a test for
each.

| reader | files | read | refused | untyped error | hang | crash |
|---|---:|---:|---:|---:|---:|---:|
"""


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    """The JSON objects in files; other lines are left out."""
    return [line.row for path in paths for line in json_lines(path) if line.row is not None]


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fuzz", type=Path, nargs="+", required=True)
    parser.add_argument("--harness", type=Path, nargs="+", required=True)
    args = parser.parse_args()
    names = ("files", "read", "refused", *BAD)
    sums: dict[str, dict[str, int]] = {}
    for row in rows_of(args.fuzz):
        kept = sums.setdefault(row["reader"], dict.fromkeys(names, 0))
        for name in names:
            kept[name] += row.get(name, 0)
    sums["**all**"] = {name: sum(each[name] for each in sums.values()) for name in names}
    lines = [
        f"| {reader} | " + " | ".join(str(each[name]) for name in names) + " |"
        for reader, each in sums.items()
    ]
    text = HEAD + "\n".join(lines) + "\n\n## Kills, disks, writers\n\n| what | tried | held |\n"
    text += "|---|---:|---:|\n"
    for row in rows_of(args.harness):
        text += f"| {WHAT[row['attack']]} | {row['tried']} | {row['held']} |\n"
    write_text(PAGE, text)


if __name__ == "__main__":
    main()
