"""Data sets: load, generate, check, split and batch them."""

from neuro_eqprop.data.cifar10 import load_cifar10
from neuro_eqprop.data.dataset import DataError, Dataset, Split, batches, one_hot
from neuro_eqprop.data.digits import load_digits
from neuro_eqprop.data.holdout import hold_out
from neuro_eqprop.data.idx import IDX, load_idx, one_file, place_of, read_idx
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.npz import load_npz, save_npz
from neuro_eqprop.data.paths import FOLDER, folders
from neuro_eqprop.data.registry import DATASETS, find, load_data, missing, summary
from neuro_eqprop.data.sst2 import load_sst2

__all__ = [
    "DATASETS",
    "FOLDER",
    "IDX",
    "DataError",
    "Dataset",
    "DatasetInfo",
    "Split",
    "batches",
    "find",
    "folders",
    "hold_out",
    "load_cifar10",
    "load_data",
    "load_digits",
    "load_idx",
    "load_npz",
    "load_sst2",
    "missing",
    "one_file",
    "one_hot",
    "place_of",
    "read_idx",
    "save_npz",
    "summary",
]
