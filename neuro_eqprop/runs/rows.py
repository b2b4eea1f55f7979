"""The rows of the JSONL files of a run folder, for readers that show what they can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class MetricsRow(TypedDict, total=False):
    """An epoch of a training: a line of `metrics.jsonl`."""

    epoch: int | float
    train_accuracy: float | None
    validation_accuracy: float | None
    test_accuracy: float | None
    loss: float | None
    settle_steps: Mapping[str, float | None]
    spectral: Mapping[str, float | None]
    weight_quantiles: Mapping[str, tuple[float, float, float, float, float]]
    """By connection the 5, 25, 50, 75 and 95 % quantile of the weights."""
    confusion: list[list[int]]
    """Test samples by true and by predicted class."""
    warning: str | None


class EvaluationRow(TypedDict, total=False):
    """An evaluation: a line of `evaluations.jsonl`."""

    on: str
    code: str | None
    bits: int | None
    steps: int | None
    samples: int | None
    accuracy: float | None
    agreement: float | None
    pearson: float | None
    rmse: float | None
    spikes_per_neuron: float | None
    synops_per_sample: float | None
    seconds: float | None
    compile_seconds: float | None
