"""`OnChipNetwork`: a network that learned on a chip, with the facts of its learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.runs.on_chip_config import OnChipConfig
from neuro_eqprop.runs.rate_baseline import Direction
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TrainedNetwork


@dataclass(frozen=True, eq=False, repr=False)
class OnChipNetwork(TrainedNetwork):
    """A network that learned on a chip, with the facts of its learning.

    Parameters
    ----------
    config : OnChipConfig
        The settings of learning on a chip.
    schedule : tuple of Phase
        The phases of a sample; one more step, the commit, follows them.
    samples_seen : int
        Samples shown in all epochs.
    directions : mapping of str to Direction
        Cosines of the update of each parameter with that of rates and with minus the gradient,
        measured before the first epoch; empty where rates learned.
    warnings : tuple of str
        Warnings of settings with which the update is far from the gradient.
    seconds : float
        Duration of the whole call.
    path : Path, optional
        The run folder, if one was written.
    trace : Trace, optional
        What was recorded while it learned.

    """

    config: OnChipConfig = field(default_factory=OnChipConfig)
    schedule: Schedule = ()
    samples_seen: int = 0
    directions: Mapping[str, Direction] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    path: Path | None = None
    trace: Trace | None = None
