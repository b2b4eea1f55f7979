"""The defaults of `train`, derived from the model, the data and the settings that are stated.

`DERIVED` is the one table of them, in the order in which they are derived: a rule sees the stated
settings and those before it. docs/explanation/defaults.md prints it, with the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import cos, isqrt, pi
from typing import Any

from neuro_eqprop.common.arrays import parse_enum
from neuro_eqprop.data import Dataset
from neuro_eqprop.networks.architectures.mlp import TIED
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Nudging, Rule, RuleSettings
from neuro_eqprop.training.study import Study, adapt, find_rule, flat_names

LAYERED, LOOPS = ("layered",), ("looped", "sparse", "toroidal")
BLOCKS = ("modern", "multiscale")
CLIPPED = (*LAYERED, *LOOPS, *BLOCKS)
ALL = (*CLIPPED, "transformer")
"""The models whose defaults are derived; the others have recipes of their own."""
NUDGED = (*ALL, "conv")
"""The models whose phases are derived."""

FEW_SAMPLES = 5000
"""Training samples below which a network settles for longer, which costs little there."""
CONTRACTION = 0.1
"""Largest contraction factor of a sweep, which the bound of layers keeps at the given feedback."""
INPUT_DRIVE = 0.4
"""Largest standard deviation of the initial drive of the first layer: larger ones generalize worse.
"""
SMALL_BETA = 0.05
"""Largest beta of a default that nudges to one side only."""


class Preset(str, Enum):
    """Which defaults `train` takes for the settings that are not stated."""

    FAST = "fast"
    """Derived: as few steps as keep the gradient."""
    EXACT = "exact"
    """Derived, but with centered nudging, and phases long enough to settle completely."""
    CHIP = "chip"
    """Those of `Study`: what can also be learned in spikes (`learn`)."""


PRESETS: Mapping[str, str] = {
    Preset.FAST.value: "derived from model and data: as few steps as keep the gradient",
    Preset.EXACT.value: "as fast, but nudged to both sides, and settled completely",
    Preset.CHIP.value: "what can also be learned in spikes: an output in 0..1, full feedback",
}
"""The presets with one clause each, for help and documentation."""
SETTLED_DRIFT, EXACT_COSINE, MOST_STEPS = 1e-3, 0.999, (15, 8)
"""Limits by which derived numbers of steps grow, see `adapted_steps`."""
EXACT: Mapping[str, object] = {
    "nudging": Nudging.CENTERED.value,
    "beta": 0.1,
    "free_steps": 60,
    "nudged_steps": 30,
}


@dataclass(frozen=True, slots=True)
class Derived:
    """A setting whose default is derived.

    Parameters
    ----------
    setting
        Its name.
    value
        Returns the value from the study so far and the data; None leaves the default of the model.
    meaning
        How it is derived, for the documentation.
    models
        The models that it applies to.
    contrasts
        Whether it concerns rules that compare phases alone.

    """

    setting: str
    value: Callable[[Study, Dataset], Any]
    meaning: str
    models: tuple[str, ...] = ALL
    contrasts: bool = False


def feedback(study: Study, data: Dataset) -> float | None:
    """Weaker in deep networks; None for a stem, which has none."""
    if study.get("stem", 0):
        return None
    return 0.1 if len(study.get("hidden")) <= 2 else 0.02


def layer_bound(study: Study, data: Dataset) -> float | None:
    """The bound at which a sweep through the layers contracts by `CONTRACTION`."""
    depth, gain = len(study.get("hidden")), study.get("feedback")
    if depth < 2 or study.get("stem", 0):
        return None
    return round(float((CONTRACTION / (gain * 4.0 * cos(pi / (depth + 1)) ** 2)) ** 0.5), 2)


def nudging(study: Study, data: Dataset) -> str:
    """One phase where it is computed as a displacement, two where phases are subtracted."""
    one_sided = is_displaced(study) and study.rule.beta <= SMALL_BETA
    found = Nudging.POSITIVE if one_sided else Nudging.CENTERED
    return found.value


def beta(study: Study, data: Dataset) -> float:
    """Small where phases are computed as displacements, most of all where feedback is full."""
    if study.rule.nudging == Nudging.HOLOMORPHIC:
        return 0.5
    if not is_displaced(study):
        return 0.1
    return 0.002 if study.model.name in BLOCKS else 0.02


def is_displaced(study: Study) -> bool:
    """Whether the nudged phase is computed as a displacement of the free one."""
    rule = study.rule
    plain = (rule.damping, rule.order, rule.anderson, rule.tolerance) == (1.0, "sequential", 0, 0.0)
    subtracted = study.model.name in ("toroidal", "sparse")
    subtracted = subtracted or study.get("feedback_weights", TIED) != TIED
    subtracted = subtracted or study.get("pool") == "max"
    return rule.name == Rule.HEBBIAN and plain and not subtracted and study.get("symmetric", True)


def steps(study: Study, data: Dataset) -> tuple[int, int]:
    """Steps of the free and of a nudged phase."""
    if not is_displaced(study) or study.model.name == "transformer":
        return 15, 8
    few = len(data.train) < FEW_SAMPLES
    if study.model.name in (*LAYERED, "conv"):
        return (3, 1) if few else (2, 1)
    return (8, 5) if few else (4, 2)


def batch(study: Study, data: Dataset) -> int:
    """The largest power of two up to the root of the number of samples, from 8 to 128."""
    return int(min(128, max(8, 1 << (isqrt(len(data.train)).bit_length() - 1))))


def learning_rate(study: Study, data: Dataset) -> float:
    """Smaller for large batches."""
    return 0.001 if study.training.batch >= 128 else 0.002


def height(study: Study, data: Dataset) -> float | None:
    """Of the activation box."""
    return 2.0 if study.get("activation") == "box" else None


def patch(study: Study, data: Dataset) -> int | None:
    """The largest divisor of the sides of an image up to the default; None for other data."""
    if len(data.shape) != 3:
        return None
    usual = study.get("patch")
    return max(n for n in range(1, usual + 1) if not any(side % n for side in data.shape[1:]))


def normalize(study: Study, data: Dataset) -> bool:
    """Whether samples are numbers."""
    return not (data.vocabulary or study.get("vocabulary", 0))


def input_deviation(study: Study, data: Dataset) -> float | None:
    """Such that the drive of the first layer begins with a deviation of at most `INPUT_DRIVE`."""
    if not study.training.normalize:
        return None
    drive = float((2.0 * data.features / (data.features + study.get("hidden")[0])) ** 0.5)
    return round(min(1.0, INPUT_DRIVE / drive), 2)


DERIVED: tuple[Derived, ...] = (
    Derived("normalize", normalize, "true; false for token ids"),
    Derived(
        "input_deviation",
        input_deviation,
        f"such that the drive of the first layer begins with a standard deviation of at most "
        f"{INPUT_DRIVE:g}",
        CLIPPED,
    ),
    Derived("output", lambda study, data: "linear", "`linear`"),
    Derived("activation", lambda study, data: "box", "`box`: relu, clipped", CLIPPED),
    Derived("height", height, "2 for `box`: all spike codes carry it, scaled to 0..1", CLIPPED),
    Derived("feedback", feedback, "0.1; 0.02 from three layers on", LAYERED),
    Derived("feedback", lambda study, data: 0.1, "0.1", LOOPS),
    Derived("feedback", lambda study, data: 0.02, "0.02", ("conv",)),
    Derived(
        "bound",
        layer_bound,
        "B with 4 g B^2 cos^2(pi / (L + 1)) = 0.1 for feedback g and L > 1 layers; one layer has "
        "none",
        LAYERED,
    ),
    Derived("bound", lambda study, data: 0.5, "0.5", (*LOOPS, *BLOCKS)),
    Derived("patch", patch, "the largest divisor of the image up to 7", ("transformer",)),
    Derived(
        "beta",
        beta,
        "0.02 where the nudged phase is computed as a displacement of the free one (0.002 in "
        "`modern` and `multiscale`, whose feedback is full), 0.1 where the phases are subtracted "
        "(`toroidal`, `sparse`, rules other than `hebbian`, solvers with options, feedback with "
        "weights of its own, maxima)",
        NUDGED,
        contrasts=True,
    ),
    Derived(
        "nudging",
        nudging,
        f"`positive` for displacements with beta up to {SMALL_BETA:g}, else `centered`",
        NUDGED,
        contrasts=True,
    ),
    Derived(
        "free_steps",
        lambda study, data: steps(study, data)[0],
        f"`layered` and `conv` 2, others 4; below {FEW_SAMPLES} samples 3 and 8; 15 for "
        f"`transformer` and where phases are subtracted",
        NUDGED,
        contrasts=True,
    ),
    Derived(
        "nudged_steps",
        lambda study, data: steps(study, data)[1],
        "`layered` and `conv` 1, others 2; below 5000 samples 1 and 5; 8 for `transformer` and "
        "where phases are subtracted",
        NUDGED,
        contrasts=True,
    ),
    Derived(
        "batch", batch, "the largest power of two up to the root of the samples, from 8 to 128"
    ),
    Derived("learning_rate", learning_rate, "0.001 from a batch of 128 on, else 0.002"),
    Derived(
        "epochs",
        lambda study, data: 30 if len(data.train) < FEW_SAMPLES else 15,
        f"30 below {FEW_SAMPLES} samples, else 15",
    ),
)
"""The derived defaults, in the order in which they are derived."""

WRITTEN = frozenset(("epochs", "batch", "learning_rate", "beta", "free_steps", "nudged_steps"))
"""Settings that every study written by a run states."""


def adapted_steps(study: Study, rows: Sequence[Mapping[str, Any]]) -> RuleSettings:
    """The settings of the rule for the next epoch, by the metrics of the last one.

    Derived numbers of steps grow, up to `MOST_STEPS`: those of the free phase where the drift is
    above `SETTLED_DRIFT`, those of the nudged phase where a cosine is below `EXACT_COSINE`.
    """
    rule = study.rule
    if not rows:
        return rule
    last = rows[-1]
    free, nudged = (round(last["settle_steps"][phase]) for phase in ("free", "nudged"))
    drift, cosines = last.get("drift"), last.get("cosine")
    if "free_steps" in study.chosen:
        more = drift is not None and drift > SETTLED_DRIFT and free < MOST_STEPS[0]
        rule = replace(rule, free_steps=max(rule.free_steps, free + more))
    if "nudged_steps" in study.chosen:
        worst = min(cosines.values()) if cosines else 1.0
        more = worst < EXACT_COSINE and nudged < MOST_STEPS[1]
        rule = replace(rule, nudged_steps=max(rule.nudged_steps, nudged + more))
    return rule


def is_complete(stated: Mapping[str, Any]) -> bool:
    """Whether settings are all of a study, as a run writes it."""
    return set(stated) >= WRITTEN


def derive(given: Mapping[str, Any], data: Dataset, preset: str | None = None) -> Study:
    """The study of the settings that are stated, completed for the data.

    Parameters
    ----------
    given : mapping
        Settings by name, flat or in tables, as `adapt` takes them.
    data : Dataset
        The training samples.
    preset : str, optional
        Which defaults the other settings get, see `Preset`; "fast" if None.

    Returns
    -------
    Study
        Complete; `chosen` names the settings that were derived.
    """
    stated = flat_names(given)
    kind = Preset.FAST if preset is None else parse_enum("preset", Preset, preset)
    study = adapt(Study(), stated)
    if kind is Preset.CHIP or is_complete(stated):
        return study
    chosen: dict[str, Any] = {}
    contrasts = RULES[study.rule.name].compares_phases if study.rule.name in RULES else True
    for each in DERIVED:
        key = each.setting
        known = study.get(key, None) is not None and key not in stated
        if not known or study.model.name not in each.models or (each.contrasts and not contrasts):
            continue
        value = EXACT.get(key) if kind is Preset.EXACT else None
        value = each.value(study, data) if value is None else value
        if value is None or (key == "nudging" and value not in find_rule(study.rule.name).nudgings):
            continue
        study = adapt(study, {key: value})
        chosen[key] = value
    return replace(study, chosen=tuple(chosen))
