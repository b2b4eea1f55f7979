"""Equilibrium propagation from rates to spikes: train, translate, simulate, compare, estimate.

`dir(neuro_eqprop)` lists the public names; each has a docstring with an example.
"""

from __future__ import annotations

import sys
from importlib import import_module

from neuro_eqprop.common.lava_import import make_importable

make_importable()

__version__ = "0.3.0"

HOMES = {
    "Connection": "networks.network",
    "Dataset": "data",
    "EnergyEstimate": "chips.energy.result",
    "EnergyReport": "chips.energy.result",
    "EqPropClassifier": "api.estimator",
    "Evaluation": "runs.evaluate",
    "History": "training.history",
    "Layer": "networks.network",
    "Model": "api.model",
    "Network": "networks.network",
    "Profile": "chips.profile",
    "Run": "api.run",
    "Simulation": "runs.simulation",
    "SpikingModel": "api.spiking_model",
    "SpikingNetwork": "spiking.ir",
    "Split": "data",
    "SweepResult": "runs.sweeps.result",
    "Trace": "traces.trace",
    "Trainer": "api.trainer",
    "check_backend": "simulators.testing",
    "check_data": "data.manage",
    "check_environment": "runs.environment",
    "check_nir": "simulators.nir.framework_check",
    "check_run": "runs.check_run",
    "compare": "traces.compare",
    "csv_logger": "api.callbacks",
    "download_data": "data.manage",
    "estimate_energy": "runs.energy",
    "flat_metrics": "api.callbacks",
    "from_nir": "api.from_nir",
    "from_snntorch": "api.from_snntorch",
    "from_torch": "api.from_torch",
    "install_lava": "simulators.lava.install",
    "learn_on_chip": "api.learn_on_chip",
    "list_data": "data.manage",
    "load_backend": "simulators.registry",
    "load_data": "data",
    "fit_profile": "chips.energy.fit",
    "load_profile": "chips.profiles.load",
    "open_run": "api.run",
    "open_trace": "traces.lazy",
    "pair_protocol": "runs.pair_protocol",
    "report": "html_report.write",
    "scalar_logger": "api.callbacks",
    "spike_timing": "traces.spike_timing",
    "sweep": "api.sweep",
    "trace_summary": "traces.summary",
    "train": "api.train",
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
