"""Read mutated files: every reader must return or raise a named error that names the file.

    python sims/attack/fuzz.py --count 600            # mutated files a reader
    python sims/attack/fuzz.py --reader NIR --count 100 --seed 7

Half of the files are damaged byte by byte (`mutate.py`), half of them in their structure
(`structures.py`); beside them pipes, folders and devices stand in the place of files. Each reader
runs in its own process, which is watched: a file that is not done after half a minute of processor
time or five minutes is a hang, and a process that ends by a signal a crash. What it finds is kept
in `--keep`.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from mutate import mutate
from readers import Reader, make_valid_files, readers, resealed, rewritten_digest
from structures import STRANGE_FILES, clear, mutate_structure, strange_file

from neuro_eqprop.files.write import append_json

COMPUTING, DEADLINE = 30.0, 300.0
"""Seconds for one file: of the processor, which do not depend on what else runs, and in all."""


class HangError(BaseException):
    """A file was not done at the deadline."""


def judge(error: BaseException, path: Path) -> str:
    """Whether an error is typed: of this package, or one that names the file; no plain KeyError."""
    named = path.name in str(error) or path.parent.name in str(error)
    own = type(error).__module__.startswith("neuro_eqprop")
    typed = isinstance(error, ValueError) and (own or named)
    return "refused" if typed or (own and isinstance(error, OSError)) else "untyped"


def mutated(reader: Reader, content: bytes, random: Random) -> bytes:
    """A mutated file; seals and digests are sometimes made good."""
    damage = random.random() < 0.5
    name = Path(reader.file).name
    changed = mutate(content, random) if damage else mutate_structure(name, content, random)
    if name.endswith(".nir") and random.random() < 0.7:
        changed = resealed(changed)
    if name.endswith(".safetensors") and random.random() < 0.5:
        changed = rewritten_digest(changed)
    return changed


def attempt(reader: Reader, path: Path) -> tuple[str, BaseException | None]:
    """Read a file; the outcome and the error."""
    watch(COMPUTING, DEADLINE)
    try:
        reader.read(path)
        return "read", None
    except HangError:
        return "hang", None
    except BaseException as error:
        return judge(error, path), error
    finally:
        watch(0.0, 0.0)


def watch(computing: float, waiting: float) -> None:
    """Ring after these times; zeros end it. A loop in a library that hears no signal ends, too."""
    signal.setitimer(signal.ITIMER_VIRTUAL, computing)
    signal.setitimer(signal.ITIMER_REAL, waiting)
    if waiting:
        faulthandler.dump_traceback_later(waiting + 60, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def attack(name: str, valid: Path, count: int, seed: int, keep: Path) -> dict[str, int]:
    """Read `count` mutated files with one reader; how many were read, refused, and so on."""
    reader, found = readers()[name], Counter[str]()
    content, random = (valid / reader.file).read_bytes(), Random(f"{name} {seed}")

    def ring(*_: object) -> None:
        raise HangError

    for number in (signal.SIGALRM, signal.SIGVTALRM):
        signal.signal(number, ring)
    import torch  # noqa: F401  (seconds on a busy machine, which are no hang)

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        if reader.together:
            shutil.copytree((valid / reader.file).parent, place, dirs_exist_ok=True)
        path = place / Path(reader.file).name
        reader.read(put(path, content))  # the valid file
        for number in range(count):
            kind = STRANGE_FILES[number] if number < len(STRANGE_FILES) else ""
            changed = b"" if kind else mutated(reader, content, random)
            with strange_file(kind, path, content) if kind else nullcontext():
                if not kind:
                    put(path, changed)
                    (keep / f"{name}.last").write_bytes(changed)
                outcome, error = attempt(reader, path)
            found[outcome] += 1
            if outcome in ("hang", "untyped"):
                said = f"{type(error).__name__}: {str(error)[:200]}"
                print(f"{name} {kind or number}: {outcome} {said}", file=sys.stderr, flush=True)
                (keep / f"{name}.{seed}.{number}").write_bytes(changed)
    (keep / f"{name}.last").unlink(missing_ok=True)
    return dict(found)


def keep_row(row: dict[str, object]) -> None:
    """Append a row to the file that the variable ATTACK_ROWS names, for `page.py`."""
    if "ATTACK_ROWS" in os.environ:
        append_json(Path(os.environ["ATTACK_ROWS"]), row)


def put(path: Path, content: bytes) -> Path:
    """Write a file in the place of whatever is there."""
    clear(path)
    path.write_bytes(content)
    return path


def attack_all(names: list[str], count: int, seed: int, keep: Path) -> list[dict[str, object]]:
    """Attack each reader in its own process; a row a reader."""
    rows: list[dict[str, object]] = []
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make_valid_files(Path(folder))
        for name in names:
            began = time.monotonic()
            command = [sys.executable, __file__, "--one", name, "--valid", folder]
            command += ["--count", str(count), "--seed", str(seed), "--keep", str(keep)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
            row: dict[str, object] = {"reader": name}
            whole = done.returncode == 0
            row |= {"files": count, **json.loads(done.stdout)} if whole else {"crash": 1}
            row["seconds"] = round(time.monotonic() - began, 1)
            rows.append(row)
            keep_row(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Attack, and print the rows as JSON; exit code 1 if a reader hung, crashed or was untyped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", action="append", default=[], choices=list(readers()))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "attack")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--valid", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        found = attack(args.one, args.valid, args.count, args.seed, args.keep)
        sys.stdout.write(json.dumps(found))
        return 0
    rows = attack_all(args.reader or list(readers()), args.count, args.seed, args.keep)
    sys.stdout.write(json.dumps(rows) + "\n")
    return int(any(row.get(bad) for row in rows for bad in ("hang", "crash", "untyped")))


if __name__ == "__main__":
    sys.exit(main())
