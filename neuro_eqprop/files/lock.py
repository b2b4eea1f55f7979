"""Locks between processes: a file that names its owner, locked with `flock` where possible.

The system releases the lock when its owner ends, also after a crash. On file systems whose locks
other computers do not see, the entry of the owner in the file decides: it is renewed while the
owner runs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from stat import S_ISREG
from threading import Event, Thread
from types import TracebackType

from neuro_eqprop.files.write import process_runs, write_failure

RENEWED = 20.0
"""Seconds between two renewals of the entry of an owner."""
EXPIRED = 120.0
"""Seconds without renewal after which an owner on another computer counts as ended."""
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

    `stale` is the owner of a lock that was taken over, since that process has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stale: Owner | None = None
        self._handle: int | None = None
        self._over = Event()

    def __enter__(self) -> FileLock:
        while True:
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise write_failure(self.path, error) from error
            try:
                system = lock_now(handle)
                owner = read_owner(handle)
                if system is False or (owner and runs(owner, handle, system is True)):
                    raise LockedError(self.path, owner)
                if not same_file(handle, self.path):
                    os.close(handle)
                    continue  # its owner has just removed it
                self.stale = owner
                entry = json.dumps(asdict(this_process())).encode()
                os.ftruncate(handle, 0)
                os.pwrite(handle, entry, 0)
            except BaseException as error:
                with suppress(OSError):
                    os.close(handle)
                if isinstance(error, OSError) and not isinstance(error, LockedError):
                    raise write_failure(self.path, error) from error
                raise
            self._handle, self._over = handle, Event()
            Thread(target=self._renew, args=(handle, self._over), daemon=True).start()
            return self

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


def read_owner(handle: int) -> Owner | None:
    """The owner named in an open lock file; None without a readable entry."""
    try:
        entry = json.loads(os.pread(handle, MAX_ENTRY, 0))
        return Owner(str(entry["host"]), int(entry["pid"]), str(entry["since"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError):
        return None  # no entry, or no file that has one


def runs(owner: Owner, handle: int, locked: bool) -> bool:
    """Whether the owner in a lock file still runs; `locked` if the system gave us the lock."""
    if owner.host == socket.gethostname():
        return not locked and process_runs(owner.pid)
    renewed = os.fstat(handle).st_mtime
    os.utime(handle)  # the clock of the file system, which may differ from ours
    now = os.fstat(handle).st_mtime
    os.utime(handle, (renewed, renewed))
    return now - renewed < EXPIRED


def same_file(handle: int, path: Path) -> bool:
    """Whether an open file still has this path."""
    try:
        mine, named = os.fstat(handle), path.stat()
    except OSError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def lock_owner(path: Path) -> Owner | None:
    """The process that holds a lock; None if no process does."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if not S_ISREG(os.fstat(handle).st_mode):
            return None
        owner, system = read_owner(handle), lock_now(handle)
        unknown = Owner("an unknown host", 0, "?")
        if system is False:
            return owner or unknown
        return owner if owner and runs(owner, handle, system is True) else None
    finally:
        os.close(handle)
