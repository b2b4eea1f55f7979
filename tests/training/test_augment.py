from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from neuro_eqprop.api.estimator import EqPropClassifier
from neuro_eqprop.api.train import run_training
from neuro_eqprop.data import load_data
from neuro_eqprop.training.augment import random_shift
from neuro_eqprop.training.study import make_study

SHAPE = (2, 5, 4)


def test_pictures_move_by_whole_pixels_and_zeros_come_in() -> None:
    x = torch.arange(1.0, 1 + 300 * 40).reshape(300, 40)
    shown = random_shift(1, SHAPE)(x, np.random.default_rng(0)).reshape(300, *SHAPE)
    moves = set()
    for before, after in zip(x.reshape(300, *SHAPE).numpy(), shown.numpy(), strict=True):
        wide = np.pad(before, ((0, 0), (1, 1), (1, 1)))
        fits = {
            (down, right)
            for down in range(3)
            for right in range(3)
            if np.array_equal(after, wide[:, down : down + 5, right : right + 4])
        }
        assert len(fits) == 1
        moves |= fits
    assert len(moves) == 9


def test_the_same_seed_moves_alike() -> None:
    x, view = torch.rand(20, 40), random_shift(2, SHAPE)
    one, other = (view(x, np.random.default_rng(seed)) for seed in (3, 4))
    assert torch.equal(one, view(x, np.random.default_rng(3)))
    assert not torch.equal(one, other)
    assert make_study(epochs=1).augmentation(load_data("digits")) == ()


def test_what_cannot_be_moved_is_refused(tmp_path: Path, sequences_file: Path) -> None:
    with pytest.raises(ValueError, match=r"only images can be shifted.*\(64,\)"):
        random_shift(1, (64,))
    with pytest.raises(
        ValueError,
        match="a shift of 4 pixels can move an image of 5 by 4 out of view: use shift=3 or less",
    ):
        random_shift(4, SHAPE)
    out = tmp_path / "run"
    study = make_study(dataset=str(sequences_file), hidden=(4,), epochs=1, shift=1)
    with pytest.raises(ValueError, match="only images"):
        run_training(study, out, force=False, resume=False, on_epoch=lambda _: None)
    assert not out.exists()
    with pytest.raises(ValueError, match="shift is -1"):
        make_study(shift=-1)


def test_training_uses_moved_images_and_testing_does_not() -> None:
    digits = load_data("digits")
    x, y = digits.train.x[:300], digits.train.y[:300]
    still = EqPropClassifier(hidden=(16,), epochs=2, seed=0, shape=(1, 8, 8)).fit(x, y)
    more = {"shift": 1}
    moved = EqPropClassifier(hidden=(16,), epochs=2, seed=0, shape=(1, 8, 8), more=more).fit(x, y)
    again = EqPropClassifier(hidden=(16,), epochs=2, seed=0, shape=(1, 8, 8), more=more).fit(x, y)
    name = "input->hidden"
    assert not np.allclose(still.model_.params[name], moved.model_.params[name])
    assert np.array_equal(again.model_.params[name], moved.model_.params[name])
