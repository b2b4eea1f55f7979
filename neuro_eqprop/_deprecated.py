"""Names of version 0.1 that have moved: they still import, with a DeprecationWarning.

`MODULES` maps the modules that README and docs of version 0.1 named to their new places. `NAMES`
maps names that are called differently now. A module in `MODULES` no longer exists: the finder below
makes a stand-in that forwards to the new module. A module that still exists forwards its old names
with a module-level `__getattr__` that calls `renamed`.

This module imports nothing of the package, and nothing heavy: the cost at start-up is one entry in
`sys.meta_path`. Remove it in version 0.3.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

ROOT = "neuro_eqprop."

MODULES = {
    "backends.brian2_biology": "backends.brian2.continuous",
    "backends.from_nir": "backends.nir.read",
    "backends.nir_assume": "backends.nir.assume",
    "claims.cells": "claims.experiments",
    "claims.intervals": "claims.statistics",
    "claims.rows": "claims.definitions",
    "data.control": "data.behaviour_cloning",
    "files": "io",
    "files.countsfile": "io.workload_file",
    "files.nwb": "io.nwb",
    "files.tracefile": "io.trace.file",
    "learn": "training",
    "learn.train": "training.train",
    "spiking.quantise": "spiking.quantize",
    "study": "experiments",
    "study.conversion": "experiments.convert",
    "study.evaluation": "experiments.evaluate",
    "study.folder": "experiments.run_folder",
    "study.settings": "experiments.config",
    "study.training": "experiments.train",
    "synapses": "synapse_recording",
}
"""Old module: new module."""

NAMES = {
    "data:generate": "data:make_sequences",
    "synapses:Story": "synapse_recording:SynapseLog",
}
"""Old module and name: new module and name, where more than the module has changed."""


def renamed(module: str, name: str) -> object:
    """Return the object that `module` called `name` in version 0.1, with a DeprecationWarning.

    Parameters
    ----------
    module : str
        Full name of the module.
    name : str
        The attribute.

    Raises
    ------
    AttributeError
        If `module` never had such a name.
    """
    old = module.removeprefix(ROOT)
    new, _, there = NAMES.get(f"{old}:{name}", "").partition(":")
    if not new:
        if old not in MODULES:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new, there = MODULES[old], name
    found: object = getattr(import_module(ROOT + new), there)
    if there != name or old not in MODULES:
        message = f"{module}.{name} is deprecated: use {ROOT}{new}.{there}"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    return found


class MovedModules:
    """Finder and loader of the stand-ins for the modules in `MODULES`."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in, or None for every other module."""
        old = name.removeprefix(ROOT)
        if old == name or old not in MODULES:
            return None
        spec = ModuleSpec(name, cls)  # type: ignore[arg-type]
        if any(other.startswith(f"{old}.") for other in MODULES):
            spec.submodule_search_locations = []
        return spec

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let the import system make an empty module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Forward the stand-in's attributes; warn, unless it is a package on the way to another."""
        name = module.__name__
        new = ROOT + MODULES[name.removeprefix(ROOT)]
        module.__doc__ = f"Deprecated: use {new}."
        module.__getattr__ = lambda attribute: renamed(name, attribute)  # type: ignore[method-assign]
        if module.__spec__ is None or module.__spec__.submodule_search_locations is None:
            warnings.warn(f"{name} is deprecated: use {new}", DeprecationWarning, stacklevel=2)


def install() -> None:
    """Make the old module names importable."""
    if MovedModules not in sys.meta_path:
        sys.meta_path.append(MovedModules)
