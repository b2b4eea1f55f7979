"""Read, make, check and batch data sets."""

from neuro_eqprop.data.behaviour_cloning import cloning, returns
from neuro_eqprop.data.cifar10 import cifar10
from neuro_eqprop.data.dataset import DataError, Dataset, Split, batches, one_hot
from neuro_eqprop.data.digits import digits
from neuro_eqprop.data.holdout import hold_out
from neuro_eqprop.data.idx import IDX, idx, one_file, place_of, read_idx
from neuro_eqprop.data.npz import own
from neuro_eqprop.data.paths import FOLDER, folders
from neuro_eqprop.data.registry import CATALOGUE, NAMES, Entry, find, load, missing, summary
from neuro_eqprop.data.sequences import generate
from neuro_eqprop.data.sst2 import sst2

__all__ = [
    "CATALOGUE",
    "FOLDER",
    "IDX",
    "NAMES",
    "DataError",
    "Dataset",
    "Entry",
    "Split",
    "batches",
    "cifar10",
    "cloning",
    "digits",
    "find",
    "folders",
    "generate",
    "hold_out",
    "idx",
    "load",
    "missing",
    "one_file",
    "one_hot",
    "own",
    "place_of",
    "read_idx",
    "returns",
    "sst2",
    "summary",
]
