"""Read, make, check and batch data sets."""

from neuro_eqprop.data.catalogue import CATALOGUE, NAMES, Entry, find, load, summary
from neuro_eqprop.data.dataset import DataError, Dataset, Split, batches, one_hot
from neuro_eqprop.data.embedded import digits
from neuro_eqprop.data.holdout import hold_out
from neuro_eqprop.data.idx_files import IDX, idx, one_file, place_of, read_idx
from neuro_eqprop.data.own import own
from neuro_eqprop.data.places import FOLDER, folders

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
    "digits",
    "find",
    "folders",
    "hold_out",
    "idx",
    "load",
    "one_file",
    "one_hot",
    "own",
    "place_of",
    "read_idx",
    "summary",
]
