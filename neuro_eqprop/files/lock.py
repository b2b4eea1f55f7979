"""Locks between processes: a file that names its owner, locked with `flock` where possible.

A lock file appears complete and locked under its name, by a hard link. The system releases the lock
when its owner ends, also after a crash. On file systems whose locks other computers do not see, or
that have none, the entry of the owner in the file decides: it is renewed while the owner runs.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType

from neuro_eqprop.files.write import (
    WriteError,
    open_own,
    process_runs,
    remove,
    rename,
    temporary_name,
    write_failure,
)

RENEWED = 20.0
"""Seconds between two renewals of the entry of an owner."""
EXPIRED = 120.0
"""Seconds without renewal after which an owner on another computer counts as ended."""
UNNAMED = 2.0
"""Seconds for which a lock file may be empty."""
MAX_ENTRY = 2**12
"""Largest number of bytes of an entry that are read."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a lock."""

    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (since {self.since})"


UNKNOWN = Owner("an unknown host", 0, "?")
"""The owner of a lock file without an entry."""


class LockedError(OSError):
    """Another process holds the lock."""

    def __init__(self, path: Path, owner: Owner | None) -> None:
        super().__init__(f"{path} is locked by {owner or 'another process'}")
        self.owner = owner


def this_process() -> Owner:
    """The current process as the owner of a lock."""
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime())
    return Owner(socket.gethostname(), os.getpid(), now)


class FileLock:
    """An exclusive lock, held in a `with` block; LockedError if another process has it.

    `stale` is the owner of a lock that was taken over, since that process has ended. A file that is
    not a lock of this program is neither changed nor replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stale: Owner | None = None
        self._handle: int | None = None
        self._over = Event()

    def __enter__(self) -> FileLock:
        entry = temporary_name(self.path)
        try:
            handle = open_own(entry, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            try:
                lock_now(handle)
                os.pwrite(handle, json.dumps(asdict(this_process())).encode(), 0)
                while not (make_link(entry, self.path) or self._take_over(entry)):
                    pass  # the owner removed the lock meanwhile
            except BaseException:
                os.close(handle)
                raise
        except (LockedError, WriteError):
            raise
        except OSError as error:
            raise write_failure(self.path, error) from error
        finally:
            remove(entry)
        self._handle, self._over = handle, Event()
        Thread(target=self._renew, args=(handle, self._over), daemon=True).start()
        return self

    def _take_over(self, entry: Path) -> bool:
        """Replace the lock of a process that has ended; False if it is not there any more."""
        try:
            handle = open_own(self.path, os.O_RDWR)
        except WriteError as error:
            if error.errno == errno.ENOENT:
                return False
            raise
        try:
            locked = lock_now(handle)
            owner = read_owner(handle, self.path)
            if locked is False or runs(owner, handle, locked is True):
                raise LockedError(self.path, owner)
            if locked is None:
                return self._break(entry, handle, owner)
            return self._replace(entry, handle, owner)
        finally:
            os.close(handle)

    def _break(self, entry: Path, handle: int, owner: Owner) -> bool:
        """As `_replace` where the system has no locks: one process at a time, by a second file."""
        breaker = self.path.with_name(f"{self.path.name}.break")
        if not make_empty(breaker):
            raise LockedError(breaker, None)
        try:
            return self._replace(entry, handle, owner)
        finally:
            remove(breaker)

    def _replace(self, entry: Path, handle: int, owner: Owner) -> bool:
        """Put a new lock in the place of an open one; False if that is not there any more."""
        if not same_file(handle, self.path):
            return False
        rename(entry, self.path)
        self.stale = owner
        return True

    def _renew(self, handle: int, over: Event) -> None:
        while not over.wait(RENEWED):
            with suppress(OSError):
                os.utime(handle)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._handle is not None:
            with suppress(OSError):
                if same_file(self._handle, self.path):
                    self.path.unlink()
            os.close(self._handle)
            self._handle = None


def lock_now(handle: int) -> bool | None:
    """Lock an open file; False if another process has it, None if the system has no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def make_link(entry: Path, path: Path) -> bool:
    """Give a lock file its name; False if there is a file of that name."""
    try:
        os.link(entry, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: an empty file holds the name meanwhile
        if not make_empty(path):
            return False
        rename(entry, path)
    return True


def make_empty(path: Path) -> bool:
    """Make an empty file; False if there is a file of that name."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return False
    return True


def read_owner(handle: int, path: Path) -> Owner:
    """The owner named in an open lock file, which may be empty; WriteError for any other file."""
    entry = os.pread(handle, MAX_ENTRY, 0)
    try:
        named = json.loads(entry) if entry else asdict(UNKNOWN)
        return Owner(str(named["host"]), int(named["pid"]), str(named["since"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise WriteError(
            errno.EEXIST, f"{path} is no lock of this program; remove it, or choose another place"
        ) from None


def runs(owner: Owner, handle: int, locked: bool) -> bool:
    """Whether the owner in a lock file still runs; `locked` if the system gave us the lock."""
    renewed = os.fstat(handle).st_mtime
    if owner == UNKNOWN:
        return time.time() - renewed < UNNAMED
    if owner.host == socket.gethostname():
        return not locked and process_runs(owner.pid)
    os.utime(handle)  # the clock of the file system, which may differ from ours
    now = os.fstat(handle).st_mtime
    os.utime(handle, (renewed, renewed))
    return now - renewed < EXPIRED


def same_file(handle: int, path: Path) -> bool:
    """Whether an open file still has this path."""
    try:
        mine, named = os.fstat(handle), path.lstat()
    except OSError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def lock_owner(path: Path) -> Owner | None:
    """The process that holds a lock; None if no process does."""
    try:
        handle = open_own(path, os.O_RDWR)
    except WriteError:
        return None
    try:
        owner, system = read_owner(handle, path), lock_now(handle)
        return owner if system is False or runs(owner, handle, system is True) else None
    except WriteError:
        return None
    finally:
        os.close(handle)
