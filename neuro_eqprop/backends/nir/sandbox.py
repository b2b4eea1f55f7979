"""Check in a child process with a deadline that a NIR file of another tool can be read.

HDF5 can loop forever or crash on a damaged file, and blocks Python meanwhile. Files of this package
end with a seal; others are first read once in a child process.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import neuro_eqprop
from neuro_eqprop.backends import subprocess
from neuro_eqprop.backends.nir.document import NirError

DEADLINE = 60.0
"""Seconds a child may take to read a file."""
START = """
import sys
sys.path[:] = [sys.argv[1], *filter(None, sys.path)]
from neuro_eqprop.backends.nir.sandbox import main
main(*sys.argv[2:])
"""


def probe(path: Path, deadline: float = DEADLINE) -> None:
    """Raise NirError for a file that a child process cannot finish reading."""
    if os.name != "posix":
        return  # supervising a child process needs POSIX
    with TemporaryDirectory(prefix="nir-", ignore_cleanup_errors=True) as place:
        root = str(Path(neuro_eqprop.__file__).parents[1])
        arguments = [root, str(path.resolve()), place]
        command = [sys.executable, "-W", "ignore", "-c", START, *arguments]
        try:
            subprocess.run(command, Path(place), deadline=deadline, environment={})
        except subprocess.SilenceError:
            raise NirError(
                f"{path} is damaged: reading it does not come to an end ({deadline:g} s were "
                "waited); write it again"
            ) from None
        except subprocess.ChildError as error:
            reason = str(error).partition("\n")[0][:200]
            raise NirError(f"{path} is damaged: reading it fails ({reason})") from error


def main(path: str, place: str) -> None:
    """In the child: read the file, to test that reading ends.

    The parent reads the file again and reports its errors.
    """
    from neuro_eqprop.backends.nir.read import look

    subprocess.guard(Path(place))
    with suppress(Exception):
        look(Path(path))
