from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from neuro_eqprop.experiments.check_settings import refuse_unused_settings
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.experiments.models import MODELS, SHAPING


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "looped", "feedback": 0.1}, "model 'looped' has no use for the setting"),
        ({"model": "looped", "heads": 2}, "'heads' (here 2): leave it out"),
        ({"model": "layered", "symmetric": False}, "'symmetric' (here False)"),
        ({"model": "transformer", "activation": "relu"}, "'activation' (here 'relu')"),
        ({"rule": "bptt", "tolerance": 0.1}, "rule 'bptt' has no use for the setting 'tolerance'"),
        ({"rule": "bptt", "anderson": 3}, "'anderson'"),
        ({"rule": "backprop", "damping": 0.5}, "'damping'"),
        ({"activation": "relu", "height": 2.0}, "activation 'relu' has no use"),
        ({"points": 6}, "nudging 'centered' has no use"),
        ({"model": "transformer", "attention_sharpness": 2.0}, "attention 'linear' has no use"),
    ],
)
def test_settings_that_change_nothing_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="leave it out") as caught:
        refuse_unused_settings(adapt(Study(), changes))
    assert sentence in str(caught.value)


@pytest.mark.parametrize("model", MODELS)
def test_models_as_they_come_and_what_they_listen_to_pass(model: str) -> None:
    study = adapt(Study(), {"model": model})
    refuse_unused_settings(study)
    assert set(MODELS[model].takes) <= set(SHAPING) <= {f.name for f in fields(Study)}
    assert not set(MODELS[model].defaults) & set(SHAPING) - set(MODELS[model].takes)
    refuse_unused_settings(replace(study, bound=0.5))


def test_what_is_true_anyway_may_be_said() -> None:
    tokens = {"model": "transformer", "activation": "tanh", "output": "linear"}
    refuse_unused_settings(adapt(Study(), tokens))
    refuse_unused_settings(adapt(Study(), {"activation": "box", "height": 2.0}))
    refuse_unused_settings(adapt(Study(), {"rule": "implicit", "tolerance": 0.1}))


def test_a_strong_nudge_is_refused_only_where_nothing_would_settle() -> None:
    with pytest.raises(ValueError, match=r"beta is 1.5; pushed away.*--nudging positive"):
        Study(beta=1.5)
    with pytest.raises(ValueError, match=r"beta_end is 1.5"):
        Study(beta_end=1.5)
    assert Study(beta=1.5, nudging="positive").beta == 1.5
    assert adapt(Study(), {"model": "transformer", "beta": 2.0}).beta == 2.0
    with pytest.raises(ValueError, match=r"damping is 1.5; it must not lie above one"):
        Study(damping=1.5)
