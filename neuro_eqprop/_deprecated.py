"""Names of version 0.1 that have moved: they still import, with a DeprecationWarning.

`MODULES` maps the modules that README and docs of version 0.1 named to their new places. `NAMES`
maps names that are called differently now. A finder in `sys.meta_path` makes a stand-in for each
module of `MODULES`, and gives each existing module that has old names in `NAMES` a `__getattr__`
for them. (Written into those modules, it would hide misspelled names from the type checker.)

This module imports nothing of the package and nothing heavy. Remove it in version 0.3.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
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
    "analysis.compare:update": "analysis.compare:hebbian_update",
    "backends.base:load": "backends.registry:load_backend",
    "data:generate": "data:make_sequences",
    "files.tracefile:read": "io.trace.lazy:read",
    "spiking.lower:Code": "spiking.codes:Code",
    "study.conversion:keep": "experiments.run_folder:save_run",
    "study.conversion:loss": "experiments.convert:conversion_error",
    "study.evaluation:spiking": "spiking.model:to_spiking",
    "synapses:Story": "synapse_recording:SynapseLog",
    "traces:Kind": "traces:ActivityKind",
    "traces:Memory": "traces:MemorySink",
    "traces:choose": "traces:parse_record",
}
"""Old module and name: new module and name, where more than the module has changed."""

KEPT = {old.partition(":")[0] for old in NAMES} - set(MODULES)
"""Modules that still exist, and have names in `NAMES`."""


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
    if (new, there) != (MODULES.get(old), name):
        message = f"{module}.{name} is deprecated: use {ROOT}{new}.{there}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    return found


class MovedNames:
    """Finder of the modules in `MODULES` and `KEPT`, and loader of the former."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec whose module forwards old names, or None for every other module."""
        old = name.removeprefix(ROOT)
        if old == name or not (old in MODULES or old in KEPT):
            return None
        if old in KEPT:
            return forwarding(PathFinder.find_spec(name, path, target))
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
        vars(module)["__getattr__"] = partial(renamed, name)
        if module.__spec__ is None or module.__spec__.submodule_search_locations is None:
            warnings.warn(f"{name} is deprecated: use {new}", DeprecationWarning, stacklevel=2)


def forwarding(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Let the loader of `spec` give its module a `__getattr__` for old names."""
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            vars(module).setdefault("__getattr__", partial(renamed, module.__name__))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def install() -> None:
    """Make the old names importable."""
    if MovedNames not in sys.meta_path:
        sys.meta_path.insert(0, MovedNames)
