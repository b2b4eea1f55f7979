"""Refuse settings of a training that nothing would listen to."""

from __future__ import annotations

from collections.abc import Iterator

from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.models import MODELS, SHAPING
from neuro_eqprop.training.config import Nudging, Rule

TRUE_ANYWAY = {"transformer": {"activation": "tanh", "output": "linear"}}
"""What a model is without listening to it."""
SETTLING = ("damping", "order", "anderson", "tolerance")
RULES = {
    Rule.BACKPROP: (*SETTLING, "beta_end"),
    Rule.SINGLE_PHASE: SETTLING,
    Rule.BPTT: ("anderson", "tolerance", "beta_end"),
    Rule.IMPLICIT: ("beta_end",),
}
"""Settings that rules pass over."""


def unused(study: Study) -> Iterator[tuple[str, str]]:
    """Each setting that nothing listens to, and who does not."""
    takes = MODELS[study.model].takes
    yield from ((key, f"model {study.model!r}") for key in SHAPING if key not in takes)
    yield from ((key, f"rule {study.rule!r}") for key in RULES.get(Rule(study.rule), ()))
    if study.activation != "box":
        yield "height", f"activation {study.activation!r}"
    if study.nudging != Nudging.HOLOMORPHIC.value:
        yield "points", f"nudging {study.nudging!r}"
    if study.attention != "softmax":
        yield "attention_sharpness", f"attention {study.attention!r}"


def refuse_unused_settings(study: Study) -> None:
    """Refuse what was set and would change nothing."""
    usual, true = Study(), TRUE_ANYWAY.get(study.model, {})
    for key, who in unused(study):
        value = getattr(study, key)
        if value not in (getattr(usual, key), true.get(key)):
            raise ValueError(
                f"{who} has no use for the setting {key!r} (here {value!r}): leave it out"
            )
