"""Checked writing: a file appears complete and verified under its name, or not at all.

A file is written to a temporary name in the same folder, `.NAME.HOST.PID.RANDOM.tmp`, flushed to
the disk, checked and renamed. Permissions follow the umask. A process that is killed leaves its
temporary files and folders; `sweep` removes those of processes that have ended.

Files of other programs are not touched: links are never followed to a file that is written, and
what is replaced has to be of this program (`refuse_existing`, `replace_folder`).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from tempfile import gettempdir
from typing import IO, Any
from uuid import uuid4

RESERVE = 2**20
"""Bytes of a disk that a write leaves free."""
TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{6})\.(?P<pid>\d+)\.[0-9a-f]{8}\.tmp", re.DOTALL
)
BLOCK = 2**16
"""Bytes read at a time to find the start of the last line."""
LONGEST_NAME = 200
"""Characters of a file name that its temporary name repeats; file systems allow 255 bytes."""
MARK = b"neuro_eqprop"
"""What the first or last bytes of each file hold that `refuse_existing` may replace."""
OWN_FILE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
"""Flags with which files are opened: links are refused, pipes and devices not waited for."""
COMPILED = re.compile(r"(^|/)__pycache__/[^/]+\.pyc$")
"""What Python makes of the modules in a folder."""
MANIFEST = ".neuro_eqprop.json"
"""File of a folder that is replaced as a whole; it lists the files that were written there."""

Verify = Callable[[Path], None]
"""Raises an exception for a temporary file that must not get its final name."""


class WriteError(OSError):
    """A file cannot be written; the message names it, the reason and the remedy."""

    def __str__(self) -> str:
        return str(self.strerror)


def host_mark() -> str:
    """Six digits that identify this computer, since folders are shared between computers."""
    return sha256(socket.gethostname().encode()).hexdigest()[:6]


def temporary_name(path: Path) -> Path:
    """A new temporary name beside a file."""
    name = path.name.encode()[:LONGEST_NAME].decode(errors="ignore")
    return path.with_name(f".{name}.{host_mark()}.{os.getpid()}.{uuid4().hex[:8]}.tmp")


def process_runs(pid: int) -> bool:
    """Whether a process of this computer runs."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except OSError:
        return True  # another user's
    return True


def leftovers(folder: Path) -> list[Path]:
    """Temporary files and folders of processes of this computer that have ended."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            match = TEMPORARY.fullmatch(path.name)
            left = match and match["host"] == host_mark() and not process_runs(int(match["pid"]))
            if left and path.lstat().st_uid == getattr(os, "getuid", int)():
                found.append(path)
    return sorted(found)


def sweep(folder: Path) -> list[Path]:
    """Remove leftover temporary files of ended processes; return them."""
    found = leftovers(folder)
    for path in found:
        with suppress(OSError):
            remove(path)
    return found


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def remove_empty(folder: Path) -> None:
    """Remove a folder, if it is there and holds nothing."""
    with suppress(OSError):
        folder.rmdir()


def make_folder(folder: Path) -> Path:
    """Make a folder and those that it is in, where they are missing; return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_failure(folder, error) from error
    return folder


def rename(source: Path, target: Path) -> None:
    """Give a file or folder another name in the same file system, in place of a file there."""
    try:
        source.replace(target)
    except OSError as error:
        raise write_failure(target, error) from error


def replace_folder(draft: Path, folder: Path) -> None:
    """Give a finished folder its final name, in place of one that this function put there.

    The two change places in one step, so that a kill leaves the old folder or the new one. Where
    the system cannot do that, the next call finishes what a kill interrupted. Links and folders
    with other files are refused, see `refuse_foreign`.
    """
    refuse_foreign(folder, force=True)
    before = folder.with_name(f".{folder.name}.before")
    if before.is_dir() and not folder.exists():
        rename(before, folder)
    files = sorted(each.relative_to(draft).as_posix() for each in files_below(draft))
    write_text(draft / MANIFEST, json.dumps({"files": files}, indent=1) + "\n")
    make_folder(folder.parent)
    if not folder.exists():
        rename(draft, folder)
    elif not exchange(draft, folder):
        remove(before)
        rename(folder, before)
        rename(draft, folder)
        remove(before)


def refuse_foreign(folder: Path, *, force: bool = False) -> None:
    """Raise WriteError for a folder that exists, unless `force` and `replace_folder` wrote it.

    The error names a file that it did not write. Files that Python compiled from those in the
    folder do not count.
    """
    if folder.exists() and not force:
        raise WriteError(
            errno.EEXIST, f"{folder} exists already; name another folder or use force=True"
        )
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise WriteError(errno.EEXIST, f"{folder} is no folder of this program; choose another")
    held = {each.relative_to(folder).as_posix() for each in files_below(folder)}
    listed = {MANIFEST, *files_of_manifest(folder / MANIFEST)}
    foreign = sorted(name for name in held - listed if not COMPILED.search(name))
    if foreign:
        raise WriteError(
            errno.EEXIST,
            f"{folder} holds {foreign[0]}, which this program did not write there; choose another "
            "folder, or move its files away",
        )


def files_of_manifest(path: Path) -> list[str]:
    """The names in a manifest; none if it cannot be read."""
    try:
        listed = json.loads(path.read_bytes())["files"]
        return [name for name in listed if isinstance(name, str)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def files_below(folder: Path) -> Iterator[Path]:
    """Files, links and empty folders in a folder and below it; links are not followed."""
    for place, folders, files in os.walk(folder):
        links = (name for name in folders if (Path(place) / name).is_symlink())
        yield from (Path(place) / name for name in (*files, *links))
        if not folders and not files and Path(place) != folder:
            yield Path(place)


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders change names in one step; False where the system cannot."""
    try:
        swap = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(swap(here, os.fsencode(one), here, os.fsencode(other), both) == 0)


def refuse_existing(path: Path, *, force: bool = False, mark: bytes = MARK) -> None:
    """Raise WriteError for a file that exists, unless `force` is given and this program wrote it.

    A file of this program holds `mark` at its beginning or end.
    """
    if not (path.exists() or path.is_symlink()):
        return
    if not force:
        raise WriteError(
            errno.EEXIST, f"{path} exists already; name another file or use force=True"
        )
    if not holds_mark(path, mark):
        raise WriteError(
            errno.EEXIST,
            f"{path} was not written by this program, so it is not replaced; name another file, or "
            "move it away",
        )


def holds_mark(path: Path, mark: bytes = MARK) -> bool:
    """Whether a regular file holds `mark` in its first or last bytes."""
    try:
        handle = open_own(path, os.O_RDONLY)
    except WriteError:
        return False
    try:
        end = max(0, os.fstat(handle).st_size - BLOCK)
        return any(mark in os.pread(handle, BLOCK, start) for start in (0, end))
    finally:
        os.close(handle)


def open_own(path: Path, flags: int) -> int:
    """Open a regular file, which is no link; WriteError for anything else.

    The file is not waited for, as a pipe or a device would have to be.
    """
    try:
        handle = os.open(path, flags | OWN_FILE, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise not_a_file(path) from error
        raise write_failure(path, error) from error
    if not S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise not_a_file(path)
    return handle


def not_a_file(path: Path) -> WriteError:
    """The error for a link, a pipe or a device where a file is to be written."""
    return WriteError(errno.EEXIST, f"{path} is no regular file of this program; remove it")


@contextmanager
def temporary_folder(*, within: Path | None = None) -> Iterator[Path]:
    """A context with a new folder that only this user can enter, and that goes at its end.

    Folders of processes that were killed are removed first. Its path is short, since Python's
    multiprocessing opens a Unix socket in it, whose path may have about 100 characters; `within`
    names another place.
    """
    usual = gettempdir()
    place = within or Path(usual if len(usual) < 60 else "/tmp")  # nosec B108
    sweep(place)
    folder = temporary_name(place / "neuro-eqprop")
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise write_failure(folder, error) from error
    try:
        yield folder
    finally:
        remove(folder)


def check_space(path: Path, size: int, *, held: int = 0) -> None:
    """Raise WriteError if a file that holds `held` bytes cannot grow by `size` bytes.

    The reason may be its disk, or the limit on the size of files (`ulimit -f`).
    """
    limit = largest_file()
    if limit is not None and held + size > limit:
        raise WriteError(
            errno.EFBIG,
            f"{path} needs {readable_bytes(held + size)} and files may have "
            f"{readable_bytes(limit)} here; raise the limit (ulimit -f) or write less",
        )
    folder = next((each for each in (path, *path.absolute().parents) if each.is_dir()), None)
    if folder is None:
        return
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return  # the file system does not report its free space
    if size + RESERVE > free:
        raise WriteError(
            errno.ENOSPC,
            f"{path} needs {readable_bytes(size)} and its disk has {readable_bytes(free)} left, of "
            f"which {readable_bytes(RESERVE)} are kept free; free some space or write to another "
            "folder",
        )


def largest_file() -> int | None:
    """The largest size of a file that this process may write, in bytes; None if any."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def readable_bytes(size: float) -> str:
    """A number of bytes with a unit: 1.5 MB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def write_failure(path: Path, error: OSError) -> WriteError:
    """A `WriteError` for a failed call of the system on a file."""
    if isinstance(error, WriteError):
        return error
    reason = error.strerror or str(error)
    advice = {
        errno.ENOSPC: "free some space or write to another folder",
        errno.EDQUOT: "free some space or write to another folder",
        errno.EFBIG: "raise the limit on file sizes (ulimit -f) or write less",
        errno.EACCES: "write to a folder that you own",
        errno.EPERM: "write to a folder that you own",
        errno.EROFS: "write to another folder",
        errno.ENAMETOOLONG: "choose a shorter name",
    }.get(error.errno or 0, "check its folder")
    return WriteError(error.errno, f"{path} cannot be written ({reason}); {advice}")


@contextmanager
def atomic(path: Path, *, size: int = 0, verify: Verify | None = None) -> Iterator[Path]:
    """A context with a temporary path that is verified and renamed to `path` at its end.

    The caller writes a file (or makes a folder) at the temporary path. After an error nothing is
    left of it, and what `path` held before is unchanged. `size` is the number of bytes, if known.
    """
    temporary = temporary_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_space(path, size)
        yield temporary
        flush_to_disk(temporary)
        if verify is not None:
            verify(temporary)
        temporary.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        remove(temporary)
        if isinstance(error, WriteError) or error.errno is None:
            raise
        raise write_failure(path, error) from error
    except BaseException:
        remove(temporary)
        raise


def flush_to_disk(path: Path) -> None:
    """Wait until the content of a file is on the disk; errors of late writes appear here."""
    if path.is_dir():
        for each in path.rglob("*"):
            if each.is_file():
                flush_to_disk(each)
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Write a folder's list of names to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def new_file(path: Path, *, size: int = 0, verify: Verify | None = None) -> Iterator[IO[bytes]]:
    """A context with an open file that gets its name, as with `atomic`, at its end."""
    with atomic(path, size=size, verify=verify) as temporary, temporary.open("xb") as file:
        yield file


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes to a file that appears complete or not at all."""

    def check_size(temporary: Path) -> None:
        if temporary.stat().st_size != len(content):
            raise WriteError(errno.EIO, f"{path} cannot be written: its disk lost part of it")

    with new_file(path, size=len(content), verify=check_size) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Write text (UTF-8) to a file that appears complete or not at all."""
    write_bytes(path, content.encode())


def append_bytes(path: Path, content: bytes) -> None:
    """Append bytes to a file that another process reads while it grows; nothing is flushed."""
    handle = open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(handle, "ab") as file:
        file.write(content)


def discard_output() -> None:
    """Send further standard output nowhere, after its reader has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def append_json(path: Path, row: Mapping[str, Any]) -> None:
    """Append an object as a line to a JSONL file, in one piece and flushed to the disk.

    Processes append one after the other. If the line cannot be written completely, the file is cut
    back to what it held before.
    """
    line = (json.dumps(dict(row), allow_nan=False) + "\n").encode()
    handle = open_own(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        with locked(handle):
            before, line = os.fstat(handle).st_size, close_last_line(handle) + line
            try:
                while line:  # a disk that fills up writes only the first part
                    line = line[os.write(handle, line) :]
                os.fsync(handle)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(handle, min(before, os.fstat(handle).st_size))
                raise write_failure(path, error) from error
    finally:
        os.close(handle)


def close_last_line(handle: int) -> bytes:
    """Remove an unfinished last line from a JSONL file; a newline if it lacks nothing but that."""
    end = start = os.fstat(handle).st_size
    tail = b""
    while start and b"\n" not in tail:
        start = max(0, start - BLOCK)
        tail = os.pread(handle, end - start, start)
    rest = tail[tail.rfind(b"\n") + 1 :]
    if not rest:
        return b""
    try:
        if isinstance(json.loads(rest), dict):
            return b"\n"
    except (ValueError, RecursionError):
        pass
    os.ftruncate(handle, end - len(rest))
    return b""


@contextmanager
def locked(handle: int) -> Iterator[None]:
    """A context in which no other process holds this lock on an open file."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:  # a file system without locks
        yield
        return
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
