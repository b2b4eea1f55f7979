"""Whether a NIR file of others can be read at all, tried in a child process with a deadline.

HDF5 can loop for ever or die on a damaged file, and holds up all of Python while it does. A file of
ours ends with a seal; one of others is read once in a child, and only then here.
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
    """Refuse a file that a child does not come back from."""
    if os.name != "posix":
        return  # children cannot be watched there
    with TemporaryDirectory(prefix="nir-", ignore_cleanup_errors=True) as place:
        root = str(Path(neuro_eqprop.__file__).parents[1])
        words = [root, str(path.resolve()), place]
        command = [sys.executable, "-W", "ignore", "-c", START, *words]
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
    """In the child: read the file; what is wrong with it is said by the parent, which reads it too.

    What is at stake here is only that it ends.
    """
    from neuro_eqprop.backends.nir.read import look

    subprocess.guard(Path(place))
    with suppress(Exception):
        look(Path(path))
