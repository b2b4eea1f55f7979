"""Record the messages of populations at each step of a Brian2 run.

Brian2's `SpikeMonitor` generates code for each run, and its events must be sorted by sample
afterwards. For a few samples that takes longer than everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.brian2.setup import Handle


@dataclass(slots=True)
class SpikeRecorder:
    """Records messages in a callback once per step, after the thresholds are tested."""

    groups: Mapping[str, Handle]
    """By population, the group with a copy of its neurons for each sample."""
    steps: int
    messages: dict[str, Handle] = field(init=False)
    """Messages (steps, neurons over all samples), in single bytes where spikes are binary."""
    step: int = 0

    def __post_init__(self) -> None:
        self.messages = {
            name: np.zeros((self.steps, len(group)), "f8" if "q" in group.variables else "i1")
            for name, group in self.groups.items()
        }

    def record_step(self) -> None:
        """Record the messages of this step."""
        for name, group in self.groups.items():
            # Indices of the neurons that spiked; the last element is their count.
            space = group.variables["_spikespace"].get_value()
            who, here = space[: space[-1]], self.messages[name][self.step]
            here[who] = group.variables["q"].get_value()[who] if "q" in group.variables else 1
        self.step += 1

    def sample(self, which: int, samples: int) -> dict[str, Array]:
        """The messages of one sample (steps, units)."""
        shaped = {
            name: every.reshape(self.steps, samples, -1) for name, every in self.messages.items()
        }
        return {name: each[:, which].astype(np.float64) for name, each in shaped.items()}
