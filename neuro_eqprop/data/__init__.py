"""Data sets: load, generate, check, split and batch them."""

from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.digits import load_digits
from neuro_eqprop.data.holdout import hold_out
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.npz import save_npz
from neuro_eqprop.data.paths import FOLDER, folders
from neuro_eqprop.data.registry import DATASETS, find, is_data_file, load_data, missing, summary
from neuro_eqprop.data.split import DataError, Split, batches, one_hot
from neuro_eqprop.data.sst2 import load_sst2

__all__ = [
    "DATASETS",
    "FOLDER",
    "DataError",
    "Dataset",
    "DatasetInfo",
    "Split",
    "batches",
    "find",
    "folders",
    "hold_out",
    "is_data_file",
    "load_data",
    "load_digits",
    "load_sst2",
    "missing",
    "one_hot",
    "save_npz",
    "summary",
]
