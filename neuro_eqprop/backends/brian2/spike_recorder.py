"""What populations send while Brian2 runs, heard step by step.

Brian2's own `SpikeMonitor` needs code that is generated for each run and events that are sorted by
sample afterwards: together more than all else that is recorded of a few samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.brian2.equations import Handle


@dataclass(slots=True)
class SpikeRecorder:
    """Called once a step, after the thresholds are tested."""

    groups: Mapping[str, Handle]
    """By population, its neurons once for each sample."""
    steps: int
    heard: dict[str, Handle] = field(init=False)
    """What was sent (steps, neurons over all samples); a byte each where spikes are binary."""
    step: int = 0

    def __post_init__(self) -> None:
        self.heard = {
            name: np.zeros((self.steps, len(group)), "f8" if "q" in group.variables else "i1")
            for name, group in self.groups.items()
        }

    def hear(self) -> None:
        """Note what is sent in this step."""
        for name, group in self.groups.items():
            # The numbers of the neurons, as many as the last place says.
            space = group.variables["_spikespace"].get_value()
            who, here = space[: space[-1]], self.heard[name][self.step]
            here[who] = group.variables["q"].get_value()[who] if "q" in group.variables else 1
        self.step += 1

    def sample(self, which: int, samples: int) -> dict[str, Array]:
        """Of one of the samples, what was sent (steps, units)."""
        shaped = {name: all_.reshape(self.steps, samples, -1) for name, all_ in self.heard.items()}
        return {name: each[:, which].astype(np.float64) for name, each in shaped.items()}
