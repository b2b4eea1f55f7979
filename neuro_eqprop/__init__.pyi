from neuro_eqprop.analysis.compare import compare as compare
from neuro_eqprop.backends.registry import load_backend as load_backend
from neuro_eqprop.data import load as load_data
from neuro_eqprop.estimator import EqPropClassifier as EqPropClassifier
from neuro_eqprop.experiments.learn_on_chip import learn_on_chip as learn_on_chip
from neuro_eqprop.experiments.run_folder import open_run as open_run
from neuro_eqprop.html_report.write import report as report
from neuro_eqprop.io.trace.lazy import open_trace as open_trace
from neuro_eqprop.io.trace.trace import Trace as Trace
from neuro_eqprop.rate.from_torch import from_torch as from_torch
from neuro_eqprop.testing import check_backend as check_backend

__all__ = [
    "EqPropClassifier",
    "Trace",
    "check_backend",
    "compare",
    "from_torch",
    "learn_on_chip",
    "load_backend",
    "load_data",
    "open_run",
    "open_trace",
    "report",
]
__version__: str
