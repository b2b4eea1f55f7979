from neuro_eqprop.analysis.compare import compare as compare
from neuro_eqprop.analysis.spike_timing import spike_timing as spike_timing
from neuro_eqprop.analysis.trace_summary import trace_summary as trace_summary
from neuro_eqprop.backends.nir.framework_check import check_nir as check_nir
from neuro_eqprop.backends.registry import load_backend as load_backend
from neuro_eqprop.backends.snntorch.native import from_snntorch as from_snntorch
from neuro_eqprop.claims.check import check_claims as check_claims
from neuro_eqprop.claims.check import list_claims as list_claims
from neuro_eqprop.data import Dataset as Dataset
from neuro_eqprop.data import Split as Split
from neuro_eqprop.data import load_data as load_data
from neuro_eqprop.energy.result import EnergyEstimate as EnergyEstimate
from neuro_eqprop.energy.result import EnergyReport as EnergyReport
from neuro_eqprop.estimator import EqPropClassifier as EqPropClassifier
from neuro_eqprop.experiments.check_run import check_run as check_run
from neuro_eqprop.experiments.energy import estimate_energy as estimate_energy
from neuro_eqprop.experiments.environment import check_environment as check_environment
from neuro_eqprop.experiments.evaluate import Evaluation as Evaluation
from neuro_eqprop.experiments.learn_on_chip import learn_on_chip as learn_on_chip
from neuro_eqprop.experiments.pair_protocol import pair_protocol as pair_protocol
from neuro_eqprop.experiments.run_folder import Run as Run
from neuro_eqprop.experiments.run_folder import open_run as open_run
from neuro_eqprop.experiments.train import train as train
from neuro_eqprop.experiments.translate import from_nir as from_nir
from neuro_eqprop.hardware.profile import Profile as Profile
from neuro_eqprop.history import History as History
from neuro_eqprop.html_report.write import report as report
from neuro_eqprop.io.dataset.manage import check_data as check_data
from neuro_eqprop.io.dataset.manage import download_data as download_data
from neuro_eqprop.io.dataset.manage import list_data as list_data
from neuro_eqprop.io.profile.load import load_profile as load_profile
from neuro_eqprop.io.trace.lazy import open_trace as open_trace
from neuro_eqprop.io.trace.trace import Trace as Trace
from neuro_eqprop.model import Model as Model
from neuro_eqprop.networks import Connection as Connection
from neuro_eqprop.networks import Layer as Layer
from neuro_eqprop.networks import Network as Network
from neuro_eqprop.rate.from_torch import from_torch as from_torch
from neuro_eqprop.spiking.ir import SpikingNetwork as SpikingNetwork
from neuro_eqprop.spiking.model import Simulation as Simulation
from neuro_eqprop.spiking.model import SpikingModel as SpikingModel
from neuro_eqprop.sweeps.result import SweepResult as SweepResult
from neuro_eqprop.sweeps.run import sweep as sweep
from neuro_eqprop.testing import check_backend as check_backend

__all__ = [
    "Connection",
    "Dataset",
    "EnergyEstimate",
    "EnergyReport",
    "EqPropClassifier",
    "Evaluation",
    "History",
    "Layer",
    "Model",
    "Network",
    "Profile",
    "Run",
    "Simulation",
    "SpikingModel",
    "SpikingNetwork",
    "Split",
    "SweepResult",
    "Trace",
    "check_backend",
    "check_claims",
    "check_data",
    "check_environment",
    "check_nir",
    "check_run",
    "compare",
    "download_data",
    "estimate_energy",
    "from_nir",
    "from_snntorch",
    "from_torch",
    "learn_on_chip",
    "list_claims",
    "list_data",
    "load_backend",
    "load_data",
    "load_profile",
    "open_run",
    "open_trace",
    "pair_protocol",
    "report",
    "spike_timing",
    "sweep",
    "trace_summary",
    "train",
]
__version__: str
