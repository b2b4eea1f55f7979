"""Equilibrium Propagation from rates to spikes: train, translate, simulate, compare, estimate."""

from __future__ import annotations

from importlib import import_module

from neuro_eqprop import _deprecated

_deprecated.install()

__version__ = "0.2.0"

HOMES = {
    "EqPropClassifier": "neuro_eqprop.estimator",
    "check_backend": "neuro_eqprop.testing",
    "compare": "neuro_eqprop.analysis.compare",
    "from_torch": "neuro_eqprop.rate.from_torch",
    "learn_on_chip": "neuro_eqprop.experiments.learn_on_chip",
    "load_backend": "neuro_eqprop.backends.registry:load_backend",
    "load_data": "neuro_eqprop.data:load",
    "open_run": "neuro_eqprop.experiments.run_folder",
    "Trace": "neuro_eqprop.io.trace.trace",
    "open_trace": "neuro_eqprop.io.trace.lazy",
    "report": "neuro_eqprop.html_report.write",
}
"""Where the names that users need most are at home, with the name they have there if another."""

__all__ = ["__version__", *HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    """A name from its home, when it is asked for: importing this module loads nothing."""
    # Their types are in the stub beside this file: an import here, even one for the eyes of the
    # type checker alone, would let every module that asks for the version depend on all of them.
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = HOMES[name].partition(":")
    found: object = getattr(import_module(module), there or name)
    return found
