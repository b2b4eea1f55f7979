"""Files are written, renamed, removed and locked, and processes started, in `files` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuro_eqprop

PACKAGE = Path(neuro_eqprop.__file__).parent
DOOR = PACKAGE / "files"

MODULES = {
    "fcntl",
    "msvcrt",
    "multiprocessing",
    "subprocess",
    "tempfile",
}
"""Modules that no other room imports."""
FUNCTIONS = {
    "os": (
        *("link", "makedirs", "mkdir", "mkfifo", "open", "remove", "removedirs", "rename"),
        *("renames", "replace", "rmdir", "symlink", "truncate", "unlink"),
        *("fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "startfile", "system"),
        *("execl", "execv", "execve", "execvp", "spawnl", "spawnv", "spawnve", "spawnvp"),
    ),
    "shutil": (
        *("copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "make_archive"),
        *("move", "rmtree", "unpack_archive"),
    ),
    "np": ("save", "savetxt", "savez", "savez_compressed"),
    "numpy": ("save", "savetxt", "savez", "savez_compressed"),
    "asyncio": ("create_subprocess_exec", "create_subprocess_shell"),
    "futures": ("ProcessPoolExecutor",),
}
"""Functions of modules that write, remove, rename or start."""
METHODS = {
    *("hardlink_to", "link_to", "mkdir", "rename", "rmdir", "symlink_to", "touch", "unlink"),
    *("write_bytes", "write_text", "tofile", "to_csv", "to_parquet", "to_hdf", "to_pickle"),
}
"""Methods of paths, arrays and tables that write, remove or rename."""
OPENERS = {"open", "File", "memmap", "open_memmap"}
"""Functions and methods that write in a mode such as "w"; without a mode they read."""

READS = "it opens the current folder, to come back to it"
LAVA = "it looks at what Lava starts, and starts nothing"
EXCEPTIONS = {
    ("common/current_folder.py", "os.open"): READS,
    ("simulators/lava/setup.py", "import multiprocessing"): LAVA,
    ("cli/traces.py", ".to_csv"): "the method of a trace with that name, which uses the door",
}
"""Places outside of the door that stay, and why."""


def bypasses(source: str) -> Iterator[str]:
    """What a module does that belongs behind the door."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module), *(f"{node.module}.{a.name}" for a in node.names)]
            for module, functions in FUNCTIONS.items():
                if names[0] in (module, f"concurrent.{module}"):
                    yield from (f"{module}.{a.name}" for a in node.names if a.name in functions)
        else:
            names = []
        yield from (f"import {n.split('.')[0]}" for n in names if n.split(".")[0] in MODULES)
        if isinstance(node, ast.Call):
            yield from called(node)


def called(node: ast.Call) -> Iterator[str]:
    """What a call does that belongs behind the door."""
    if isinstance(node.func, ast.Name):
        if node.func.id in OPENERS and writes(node, 1):
            yield node.func.id
        return
    if not isinstance(node.func, ast.Attribute):
        return
    name, owner = node.func.attr, node.func.value
    module = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    if name in FUNCTIONS.get(module, ()):
        yield f"{module}.{name}"
    elif name in METHODS:
        yield f".{name}"
    elif name == "replace" and len(node.args) == 1 and not node.keywords:
        yield ".replace"  # of a path; that of a text takes two
    elif name in OPENERS:
        first = name == "open" and module not in {"gzip", "bz2", "lzma", "io", "tarfile"}
        if writes(node, 0 if first else 1):
            yield f".{name}"


def writes(node: ast.Call, place: int) -> bool:
    """Whether a call to open something has a mode that writes, at a place of its arguments."""
    given = [*node.args[place : place + 1], *(k.value for k in node.keywords if k.arg == "mode")]
    modes = [each.value for each in given if isinstance(each, ast.Constant)]
    # What follows a colon is a compression, such as r:xz.
    plain = [mode.partition(":")[0] for mode in modes if isinstance(mode, str)]
    return any(set(mode) & set("wax+") for mode in plain)


def test_only_one_room_writes_files_and_starts_processes() -> None:
    found, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if DOOR in path.parents:
            continue
        place = path.relative_to(PACKAGE).as_posix()
        for what in bypasses(path.read_text(encoding="utf-8")):
            used.add((place, what))
            if (place, what) not in EXCEPTIONS:
                found.append(f"{place}: {what}")
    assert found == [], "use the functions of neuro_eqprop.files"
    assert set(EXCEPTIONS) <= used, "exceptions that are not needed any more"


@pytest.mark.parametrize(
    "line",
    [
        "open('a', 'w')",
        "open('a', mode='ab')",
        "path.open('xb')",
        "path.open(mode='r+')",
        "gzip.open(path, 'wb')",
        "h5py.File(path, 'w')",
        "np.memmap(path, mode='w+')",
        "np.save(path, x)",
        "x.tofile(path)",
        "path.write_text('')",
        "path.replace(other)",
        "path.rename(other)",
        "os.replace(a, b)",
        "os.open(path, os.O_RDWR)",
        "shutil.rmtree(path)",
        "from shutil import rmtree",
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing.pool",
        "from tempfile import mkdtemp",
        "os.fork()",
        "import fcntl",
        "from concurrent.futures import ProcessPoolExecutor",
    ],
)
def test_the_lint_sees(line: str) -> None:
    assert list(bypasses(line))


@pytest.mark.parametrize(
    "line",
    [
        "open('a')",
        "path.open('rb')",
        "gzip.open(path)",
        'tarfile.open(path, "r:xz")',
        "h5py.File(path, 'r')",
        "text.replace('a', 'b')",
        "replace(settings, beta=1)",
        "write_text(path, '')",
        "from neuro_eqprop.files import subprocess",
        "os.environ.get('HOME')",
        "shutil.which('gcc')",
    ],
)
def test_the_lint_lets_pass(line: str) -> None:
    assert not list(bypasses(line))
