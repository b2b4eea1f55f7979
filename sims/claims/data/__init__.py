"""The data sets that only the claims use: sequences and behaviour cloning."""

from __future__ import annotations

from neuro_eqprop.data import Dataset, DatasetInfo, load_data
from sims.claims.data.behaviour_cloning import ACROBOT, CARTPOLE
from sims.claims.data.sequences import ADDITION, COPYING, PARITY, RECALL, SORTING

OWN: dict[str, DatasetInfo] = {
    entry.name: entry for entry in (CARTPOLE, ACROBOT, PARITY, ADDITION, COPYING, SORTING, RECALL)
}


def load(name: str) -> Dataset:
    """A data set of the claims, or one of the package."""
    return OWN[name].load() if name in OWN else load_data(name)
