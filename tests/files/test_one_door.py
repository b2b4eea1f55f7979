"""Files are written, renamed, removed and locked, and processes started, in `files` alone.

The lint follows names through imports, assignments and `getattr` with a constant. A function that
writes is not mentioned at all, called or not; a file is opened in a mode that is a constant and
reads. What a syntax tree does not show, such as a name put together at run time, is not found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuro_eqprop

PACKAGE = Path(neuro_eqprop.__file__).parent
DOOR = PACKAGE / "files"

MODULES = {
    *("billiard", "distutils", "fcntl", "joblib", "loky", "msvcrt", "multiprocessing", "pty"),
    *("dbm", "fileinput", "shelve", "sqlite3", "subprocess", "tempfile", "webbrowser"),
}
"""Modules that no other room imports, also as parts of others (`torch.multiprocessing`)."""
FUNCTIONS = {
    "os": {
        *("link", "makedirs", "mkdir", "mkfifo", "mknod", "open", "remove", "removedirs", "rename"),
        *("renames", "replace", "rmdir", "symlink", "truncate", "ftruncate", "unlink", "fdopen"),
        *("chmod", "chown", "fchmod", "fchown", "lchmod", "lchown", "pwrite", "setxattr", "utime"),
        *("fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "startfile", "system"),
        *("execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe"),
        *("spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
        "__dict__",
    },
    "shutil": {
        *("chown", "copy", "copy2", "copyfile", "copyfileobj", "copymode", "copystat", "copytree"),
        *("make_archive", "move", "rmtree", "unpack_archive", "__dict__"),
    },
    "numpy": {"save", "savetxt", "savez", "savez_compressed"},
    "torch": {"save"},
    "nir": {"write"},
    "logging": {"basicConfig"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "Path": {"replace"},
    "request": {"urlretrieve"},
}
"""Functions of modules that write, remove, rename or start."""
METHODS = {
    *("chmod", "hardlink_to", "lchmod", "link_to", "mkdir", "rename", "rmdir", "symlink_to"),
    *("dump", "dump_stats", "extractall", "save_file", "savefig", "serialize_file", "tofile"),
    *("to_csv", "to_excel", "to_feather", "to_hdf", "to_netcdf", "to_parquet", "to_pickle"),
    *("to_sql", "to_stata", "to_xml", "to_zarr", "touch", "unlink", "write_bytes", "write_text"),
    *("FileHandler", "RotatingFileHandler", "TimedRotatingFileHandler", "WatchedFileHandler"),
    *("NixIO", "ProcessPoolExecutor", "run_in_executor", "subprocess_exec", "subprocess_shell"),
}
"""Methods of any object, and functions of any library, that write, remove, rename or start."""
OPENERS = {"memmap": 2} | dict.fromkeys(
    (
        *("open", "open_memmap", "BZ2File", "File", "FileIO", "GzipFile", "LZMAFile"),
        *("NWBHDF5IO", "TarFile", "ZipFile"),
    ),
    1,
)
"""What opens a file, and the place of the mode among its arguments."""
WRITE_BY_DEFAULT = {"memmap", "open_memmap"}
TAKE_A_PATH = {"builtins", "bz2", "codecs", "gzip", "io", "lzma", "tarfile", "wave", "Path"}
"""Owners of an `open` whose first argument is a path; in that of a path, the mode comes first."""
BUILT_IN = {"__import__", "eval", "exec", "getattr", "open"}
UNKNOWN = "?"
"""The origin of a local name."""


def bypasses(source: str) -> Iterator[str]:
    """What a module does that belongs behind the door."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {name: name for name in FUNCTIONS} | {"np": "numpy"}
    names |= {name: f"builtins.{name}" for name in BUILT_IN}
    for node in nodes:
        for name, source_name in imports(node):
            names[name] = source_name
            yield from forbidden(source_name)
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            origin = origin_of(node.value, names)
            if origin is not None and not origin.startswith(UNKNOWN):
                names[node.targets[0].id] = origin
    calls = {node.func: node for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        origin = origin_of(node, names)
        if origin is None or origin.startswith("neuro_eqprop."):
            continue
        yield from forbidden(origin)
        call = calls.get(node) if isinstance(node, ast.expr) else None
        if call is not None:
            yield from called(origin, call)
        elif origin in ("builtins.open", f"{UNKNOWN}.open", "pathlib.Path.open"):
            yield ".open in an unknown mode"


def imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a statement imports, and where from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
            if alias.name != first:
                yield alias.name, alias.name
    elif isinstance(node, ast.ImportFrom):
        module = "neuro_eqprop." * bool(node.level) + (node.module or "")
        for alias in node.names:
            yield alias.asname or alias.name, f"{module}.{alias.name}"


def origin_of(node: ast.AST, names: dict[str, str]) -> str | None:
    """The name of a function, method or module, with what it comes from; None if it has none."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return f"{origin_of(node.value, names) or UNKNOWN}.{node.attr}"
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function = (origin_of(node.func, names) or UNKNOWN).rpartition(".")[2]
    words = [str(each.value) if isinstance(each, ast.Constant) else None for each in node.args]
    if function in ("__import__", "import_module"):
        return words[0]
    if function == "getattr" and len(words) > 1:
        return f"{origin_of(node.args[0], names) or UNKNOWN}.{words[1] or '__dict__'}"
    return None


def forbidden(origin: str) -> Iterator[str]:
    """What is wrong with mentioning a name, whether it is called or not."""
    parts = origin.split(".")
    if parts[0] == "neuro_eqprop":
        return
    if parts[0] != UNKNOWN:
        yield from (f"import {part}" for part in parts if part in MODULES)
    if len(parts) > 1 and parts[-1] in FUNCTIONS.get(parts[-2], ()):
        yield f"{parts[-2]}.{parts[-1]}"
    elif len(parts) > 1 and parts[-1] in METHODS:
        yield f".{parts[-1]}"
    elif origin in ("builtins.exec", "builtins.eval", "builtins.__import__"):
        yield parts[-1]


def called(origin: str, call: ast.Call) -> Iterator[str]:
    """What is wrong with the arguments of a call."""
    owner, _, name = origin.rpartition(".")
    words = {keyword.arg for keyword in call.keywords}
    if name == "replace" and owner.startswith(UNKNOWN):
        if (len(call.args) == 1 and not words) or words == {"target"}:
            yield ".replace"  # of a path; that of a text takes two
    elif name in OPENERS:
        of_path = name == "open" and owner.rpartition(".")[2] not in TAKE_A_PATH
        usual = "w" if name in WRITE_BY_DEFAULT else "r"
        mode = mode_of(call, 0 if of_path else OPENERS[name], "mode", usual)
        yield from (f".{name}{in_a_mode}" for in_a_mode in judged(mode))
    elif "mmap_mode" in words:
        yield from (f".{name}{what}" for what in judged(mode_of(call, 9, "mmap_mode", "r")))


def mode_of(call: ast.Call, place: int, word: str, usual: str) -> str | None:
    """The mode in which a call opens something, by place or by word; None if it is not known."""
    if any(isinstance(each, ast.Starred) for each in call.args[: place + 1]):
        return None
    modes = [*call.args[place : place + 1], *(k.value for k in call.keywords if k.arg == word)]
    if not modes:
        return usual if all(each.arg for each in call.keywords) else None
    return str(modes[0].value) if isinstance(modes[0], ast.Constant) else None


def judged(mode: str | None) -> Iterator[str]:
    """What is wrong with a mode; what follows a colon is a compression, such as r:xz."""
    if mode is None:
        yield " in an unknown mode"
    elif set(mode.partition(":")[0]) & set("wax+"):
        yield " for writing"


READS = "it reads from an archive, a picture or a server"
OWN = "it writes into a file of the door"
EXCEPTIONS = {
    ("chips/energy/figures.py", ".savefig"): OWN,
    ("cli/traces.py", ".to_csv"): "the method of a trace with that name, which uses the door",
    ("common/current_folder.py", "os.open"): "it opens the current folder, to come back to it",
    ("data/cifar10_copy.py", ".open in an unknown mode"): READS,
    ("data/fetch.py", ".open in an unknown mode"): READS,
    ("data/sst2.py", ".open in an unknown mode"): READS,
    ("runs/checkpoint.py", "numpy.save"): "the function of safetensors, which makes bytes",
    ("simulators/biology/rendering.py", "eval"): "equations of this package",
    ("simulators/biology/rendering.py", "exec"): "equations of this package",
    ("simulators/lava/install.py", ".ZipFile for writing"): OWN,
    ("simulators/lava/setup.py", "import multiprocessing"): "it looks at what Lava starts",
    ("simulators/lava/native/watch.py", "import multiprocessing"): "so does this",
    ("simulators/nir/write.py", "nir.write"): OWN,
    ("traces/nwb.py", ".NWBHDF5IO for writing"): OWN,
}
"""Places outside of the door that stay, and why."""


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
        "import gzip; gzip.open(path, 'wb')",
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
        "from os import unlink as u",
        "import os as system; system.unlink(path)",
        "from pathlib import os; os.unlink(path)",
        "getattr(os, 'unlink')(path)",
        "getattr(os, name)(path)",
        "getattr(path, 'write_text')('')",
        "os.__dict__['unlink'](path)",
        "remove = os.unlink",
        "map(os.remove, paths)",
        "write = path.write_text",
        "o = open; o(path, 'w')",
        "with_path(open)",
        "from builtins import open as o; o(path, 'w')",
        "from pathlib import Path; Path.open(path, 'w')",
        "from pathlib import Path; Path.replace(path, other)",
        "path.replace(target=other)",
        "open(path, mode)",
        "open(path, *modes)",
        "open(path, **options)",
        "path.open(f'{kind}b')",
        "io.FileIO(path, 'w')",
        "os.fdopen(handle, 'w')",
        "codecs.open(path, 'w')",
        "from h5py import File as F; F(path, 'a')",
        "import h5py; F = h5py.File; F(path, mode)",
        "np.memmap(path)",
        "np.load(path, mmap_mode='r+')",
        "import numpy as n; n.savez(path, x)",
        "from numpy import savez_compressed",
        "array.dump(path)",
        "zipfile.ZipFile(path, mode='a')",
        "archive.extractall(folder)",
        "import tarfile; tarfile.open(path, 'w:gz')",
        "logging.FileHandler(path)",
        "logging.basicConfig(filename=path)",
        "from logging.handlers import RotatingFileHandler",
        "import sqlite3",
        "from safetensors.numpy import save_file",
        "shutil.move(a, b)",
        "figure.savefig(path)",
        "exec(text)",
        "__import__('subprocess')",
        "importlib.import_module('multiprocessing')",
        "from torch import multiprocessing",
        "import torch; torch.multiprocessing.spawn(f)",
        "import concurrent.futures as f; f.ProcessPoolExecutor()",
        "os.spawnlp(os.P_WAIT, name)",
        "urllib.request.urlretrieve(address, path)",
    ],
)
def test_the_lint_sees(line: str) -> None:
    assert list(bypasses(line))


@pytest.mark.parametrize(
    "line",
    [
        "open('a')",
        "path.open('rb')",
        "import gzip; gzip.open(path)",
        'import tarfile; tarfile.open(path, "r:xz")',
        "h5py.File(path, 'r')",
        "text.replace('a', 'b')",
        "replace(settings, beta=1)",
        "write_text(path, '')",
        "from neuro_eqprop.files import subprocess",
        "os.environ.get('HOME')",
        "shutil.which('gcc')",
        "def f(file: h5py.File): pass",
        "np.load(path, mmap_mode='r')",
        "from neuro_eqprop.files.write import write_text as w; w(path, '')",
        "from neuro_eqprop.files import write; write.write_text(path, '')",
        "importlib.import_module('brian2')",
        "re.compile('a')",
    ],
)
def test_the_lint_lets_pass(line: str) -> None:
    assert not list(bypasses(line))
