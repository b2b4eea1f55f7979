"""Names of a package that are imported on first use, because they need a heavy package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package (PEP 562): each name, imported from its module on first use.

    `homes` are the names with their modules, relative to the package.
    """

    def import_name(name: str) -> object:
        module = sys.modules[package]
        if name not in homes:
            # The name and the module let Python suggest the closest name.
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=module
            )
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(module, name, value)
        return value

    return import_name
