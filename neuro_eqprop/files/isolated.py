"""Child processes in isolated Python interpreters, which end with their parent.

A child runs with `python -I`, which ignores the current folder and the variables PYTHON*. It gets
the search path of its parent without relative entries and without the current folder, and this
package from the folder that the parent has it from.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of this package."""
DIE_WITH_PARENT = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv.pop(1)):
    os._exit(1)
"""
"""First lines of a child: the system kills it when the thread that started it ends, even while the
child still imports modules. The first argument is the process id of its parent."""
START = f"""{DIE_WITH_PARENT}
import json
sys.path[:] = json.loads(sys.argv[1])
import importlib, importlib.util
spec = importlib.util.spec_from_file_location("neuro_eqprop", sys.argv[2] + "/__init__.py",
    submodule_search_locations=[sys.argv[2]])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
module, _, function = sys.argv[3].partition(":")
getattr(importlib.import_module(module), function)(*sys.argv[4:])
"""
PR_SET_PDEATHSIG = 1


def search_path() -> list[str]:
    """The search path of this process without relative entries and the current folder."""
    here, own = Path.cwd(), ROOT.parent
    places = [Path(place) for place in sys.path if place and Path(place).is_absolute()]
    kept = [str(place) for place in places if place not in (here, own)]
    # Last, so that a file in a checkout cannot replace an installed package.
    return [*dict.fromkeys(kept), str(own)]


def command(entry: str, *arguments: str) -> list[str]:
    """The command that calls `module:function` with string arguments in an isolated interpreter."""
    path = json.dumps(search_path())
    return [
        sys.executable,
        "-I",
        "-u",
        "-W",
        "ignore",
        "-c",
        START,
        str(os.getpid()),
        path,
        str(ROOT),
        entry,
        *arguments,
    ]


def outlive_parent() -> None:
    """In the child: undo `die_with_parent`, for a child that monitors its parent itself."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0)
