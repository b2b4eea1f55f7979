"""Optimizers and schedulers of torch by name, and that a run goes on with either as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.training.lr_schedules import learning_rates, torch_schedulers
from neuro_eqprop.training.optimizers import OPTIMIZERS, make_optimizer
from neuro_eqprop.training.settings import KNOWN_WITHOUT_TORCH, OptionString, parse_option_string
from neuro_eqprop.training.study import Study, adapt, make_study


def test_options_are_read_from_the_text() -> None:
    assert parse_option_string("adam") == OptionString("adam", {})
    wanted = OptionString(
        "sgd", {"momentum": 0.5, "nesterov": True, "betas": (0.9, 0.5), "name": "a"}
    )
    assert (
        parse_option_string("sgd(momentum=0.5, nesterov=true, betas=(0.9, 0.5), name='a')")
        == wanted
    )


@pytest.mark.parametrize("text", ["", "sgd(", "sgd(0.5)", "a.b(c=1)", "sgd(x=open('f'))", "a b"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither a name"):
        parse_option_string(text)


def test_only_weights_decay_and_all_of_them() -> None:
    params = {name: torch.ones(2) for name in ("a", "b", "c", "bias")}
    stepper = make_optimizer("sgd(momentum=0.0)", 1.0, params, weights=iter("abc"), decay=0.25)
    for tensor in params.values():
        tensor.grad = torch.zeros(2)
    stepper.step()
    assert [float(params[name][0]) for name in params] == [0.75, 0.75, 0.75, 1.0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lbfgs", "several times"),
        ("adam(lr=3)", "learning_rate"),
        ("adam(speed=3)", "unknown option of optimizer 'adam' 'speed'; known: "),
        ("sgd(momentum=-1)", "rejects its options"),
    ],
)
def test_an_optimizer_that_cannot_be_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make_optimizer(make_study(optimizer=text).training.optimizer, 0.1, {"any": torch.zeros(1)})
    with pytest.raises(UnknownNameError, match="known: adam"):
        make_study(optimizer="adamm")


def test_optimizers_accepted_without_torch_are_known_to_it() -> None:
    assert set(KNOWN_WITHOUT_TORCH) <= set(OPTIMIZERS)


@pytest.mark.parametrize("name", torch_schedulers())
def test_a_scheduler_goes_as_in_torch(name: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "StepLR": {"step_size": 2, "gamma": 0.5},
        "MultiStepLR": {"milestones": [1, 3], "gamma": 0.1},
        "ExponentialLR": {"gamma": 0.8},
        "OneCycleLR": {"max_lr": 0.2, "total_steps": 12},
        "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2, "step_size_up": 3},
        "CosineAnnealingLR": {"T_max": 4},
        "CosineAnnealingWarmRestarts": {"T_0": 2},
    }
    given = options.get(name, {})
    text = f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})"
    found = learning_rates(text, 0.1, 4, 3)
    stepper = torch.optim.SGD([torch.zeros(1)], lr=0.1, momentum=0.9)
    scheduler = getattr(torch.optim.lr_scheduler, name)(stepper, **given)
    for epoch in range(4):
        for batch in range(3):
            assert found[3 * epoch + batch] == stepper.param_groups[0]["lr"]
            stepper.step()
            if name in ("OneCycleLR", "CyclicLR"):
                scheduler.step()
        if name not in ("OneCycleLR", "CyclicLR"):
            scheduler.step()


def test_courses_of_our_own_and_what_torch_needs_is_filled_in() -> None:
    np.testing.assert_allclose(learning_rates("linear", 1.0, 2, 2), [1.0, 0.75, 0.5, 0.25])
    assert len(learning_rates("OneCycleLR", 0.1, 3, 5)) == 15
    assert learning_rates("CosineAnnealingLR", 0.1, 3, 5)[0] == 0.1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ReduceLROnPlateau", "metric of each epoch"),
        ("LambdaLR", "function"),
        ("StepLR", "rejects its options"),
        ("StepLR(size=3)", "unknown option of scheduler 'StepLR' 'size'; known: step_size"),
        ("cosin", "known: cosine"),
    ],
)
def test_a_scheduler_that_cannot_be_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        learning_rates(make_study(lr_schedule=text).training.lr_schedule, 0.1, 2, 1)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "few.npz"
    np.savez(path, x=rng.random((40, 5)), y=np.arange(40) % 2)
    return path


MORE: tuple[dict[str, Any], ...] = (
    {"nudging": "random"},
    {"lr_schedule": "OneCycleLR"},
    {"lr_schedule": "StepLR(step_size=1, gamma=0.5)", "weight_decay": 0.01},
    {"beta_end": 0.1, "order": "synchronous", "tolerance": 1e-3},
)


CHANGES = [*({"optimizer": name} for name in OPTIMIZERS), *MORE]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_run_goes_on_to_the_same_bytes(tmp_path: Path, few: Path, change: dict[str, Any]) -> None:
    result = {"dataset": str(few), "model": "looped", "hidden": 3, "epochs": 2, "batch": 8}
    study = adapt(Study(), {**result, "free_steps": 3, "nudged_steps": 2, **change})

    def stop(line: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    def finish(name: str, resume: bool) -> bytes:
        run_training(study, tmp_path / name, force=False, resume=resume, on_epoch=lambda _: None)
        return (tmp_path / name / "model.safetensors").read_bytes()

    with pytest.raises(KeyboardInterrupt):
        run_training(study, tmp_path / "cut", force=False, resume=False, on_epoch=stop)
    assert finish("cut", resume=True) == finish("whole", resume=False)
