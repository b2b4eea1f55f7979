from neuro_eqprop.api.callbacks import csv_logger as csv_logger
from neuro_eqprop.api.callbacks import flat_metrics as flat_metrics
from neuro_eqprop.api.callbacks import scalar_logger as scalar_logger
from neuro_eqprop.api.estimator import EqPropClassifier as EqPropClassifier
from neuro_eqprop.api.from_nir import from_nir as from_nir
from neuro_eqprop.api.from_snntorch import from_snntorch as from_snntorch
from neuro_eqprop.api.from_torch import from_torch as from_torch
from neuro_eqprop.api.learn_on_chip import learn_on_chip as learn_on_chip
from neuro_eqprop.api.model import Model as Model
from neuro_eqprop.api.run import Run as Run
from neuro_eqprop.api.run import open_run as open_run
from neuro_eqprop.api.spiking_model import SpikingModel as SpikingModel
from neuro_eqprop.api.sweep import sweep as sweep
from neuro_eqprop.api.train import train as train
from neuro_eqprop.api.trainer import Trainer as Trainer
from neuro_eqprop.chips.energy.fit import fit_profile as fit_profile
from neuro_eqprop.chips.energy.result import EnergyEstimate as EnergyEstimate
from neuro_eqprop.chips.energy.result import EnergyReport as EnergyReport
from neuro_eqprop.chips.profile import Profile as Profile
from neuro_eqprop.chips.profiles.load import load_profile as load_profile
from neuro_eqprop.data import Dataset as Dataset
from neuro_eqprop.data import Split as Split
from neuro_eqprop.data import load_data as load_data
from neuro_eqprop.data.manage import check_data as check_data
from neuro_eqprop.data.manage import download_data as download_data
from neuro_eqprop.data.manage import list_data as list_data
from neuro_eqprop.html_report.write import report as report
from neuro_eqprop.networks.network import Connection as Connection
from neuro_eqprop.networks.network import Layer as Layer
from neuro_eqprop.networks.network import Network as Network
from neuro_eqprop.runs.check_run import check_run as check_run
from neuro_eqprop.runs.energy import estimate_energy as estimate_energy
from neuro_eqprop.runs.environment import check_environment as check_environment
from neuro_eqprop.runs.evaluate import Evaluation as Evaluation
from neuro_eqprop.runs.pair_protocol import pair_protocol as pair_protocol
from neuro_eqprop.runs.simulation import Simulation as Simulation
from neuro_eqprop.runs.sweeps.result import SweepResult as SweepResult
from neuro_eqprop.simulators.lava.install import install_lava as install_lava
from neuro_eqprop.simulators.nir.framework_check import check_nir as check_nir
from neuro_eqprop.simulators.registry import load_backend as load_backend
from neuro_eqprop.simulators.testing import check_backend as check_backend
from neuro_eqprop.spiking.ir import SpikingNetwork as SpikingNetwork
from neuro_eqprop.traces.compare import compare as compare
from neuro_eqprop.traces.lazy import open_trace as open_trace
from neuro_eqprop.traces.spike_timing import spike_timing as spike_timing
from neuro_eqprop.traces.summary import trace_summary as trace_summary
from neuro_eqprop.traces.trace import Trace as Trace
from neuro_eqprop.training.history import History as History

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
    "Trainer",
    "check_backend",
    "check_data",
    "check_environment",
    "check_nir",
    "check_run",
    "compare",
    "csv_logger",
    "download_data",
    "estimate_energy",
    "fit_profile",
    "flat_metrics",
    "from_nir",
    "from_snntorch",
    "from_torch",
    "install_lava",
    "learn_on_chip",
    "list_data",
    "load_backend",
    "load_data",
    "load_profile",
    "open_run",
    "open_trace",
    "pair_protocol",
    "report",
    "scalar_logger",
    "spike_timing",
    "sweep",
    "trace_summary",
    "train",
]
__version__: str
