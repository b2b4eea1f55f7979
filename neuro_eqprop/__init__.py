"""Equilibrium Propagation from rates to spikes: train, translate, simulate, compare, count."""

from __future__ import annotations

from importlib import import_module

__all__ = ["__version__", "open_trace"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What users need most, from its module when it is asked for: importing this loads nothing."""
    # Its type is in the stub beside this file: an import here, even one for the eyes of the type
    # checker alone, would let every module that asks for the version depend on `files`.
    if name == "open_trace":
        return import_module("neuro_eqprop.files.traceviews").open_trace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
