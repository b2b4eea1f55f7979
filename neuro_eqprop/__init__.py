"""Equilibrium propagation from rates to spikes: train, translate, simulate, compare, estimate.

`dir(neuro_eqprop)` lists the public names; each has a docstring with an example.
"""

from __future__ import annotations

import sys
from importlib import import_module

from neuro_eqprop import _deprecated

_deprecated.install()

__version__ = "0.2.0"

HOMES = {
    "Connection": "networks",
    "Dataset": "data",
    "EnergyEstimate": "energy.result",
    "EnergyReport": "energy.result",
    "EqPropClassifier": "estimator",
    "Evaluation": "experiments.evaluate",
    "History": "history",
    "Layer": "networks",
    "Model": "model",
    "Network": "networks",
    "Profile": "hardware.profile",
    "Run": "experiments.run_folder",
    "Simulation": "spiking.model",
    "SpikingModel": "spiking.model",
    "SpikingNetwork": "spiking.ir",
    "Split": "data",
    "SweepResult": "sweeps.result",
    "Trace": "io.trace.trace",
    "check_backend": "testing",
    "check_claims": "claims.check",
    "check_data": "io.dataset.manage",
    "check_environment": "experiments.environment",
    "check_nir": "backends.nir.framework_check",
    "check_run": "experiments.check_run",
    "compare": "analysis.compare",
    "download_data": "io.dataset.manage",
    "estimate_energy": "experiments.energy",
    "from_nir": "experiments.translate",
    "from_snntorch": "backends.snntorch.native",
    "from_torch": "rate.from_torch",
    "learn_on_chip": "experiments.learn_on_chip",
    "list_claims": "claims.check",
    "list_data": "io.dataset.manage",
    "load_backend": "backends.registry",
    "load_data": "data",
    "load_profile": "io.profile.load",
    "open_run": "experiments.run_folder",
    "open_trace": "io.trace.lazy",
    "pair_protocol": "experiments.pair_protocol",
    "report": "html_report.write",
    "spike_timing": "analysis.spike_timing",
    "sweep": "sweeps.run",
    "trace_summary": "analysis.trace_summary",
    "train": "experiments.train",
}
"""Public names, and the module of this package that defines each."""

__all__ = ["__version__", *HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `import neuro_eqprop` is fast."""
    # Types are in the stub __init__.pyi: an import here, even under TYPE_CHECKING, would make every
    # module that imports the version depend on all of these modules.
    if name not in HOMES:
        # The name and the module let Python 3.10 and newer suggest the closest public name.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    found: object = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
