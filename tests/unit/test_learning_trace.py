from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.files.tracefile import read

SMALL = ("learn", "--hidden", "8", "--epochs", "1", "--samples", "20", "--learning-rate", "0.1")


@pytest.mark.parametrize("words", [(), ("--bits", "8"), ("--code", "rate", "--steps", "16")])
def test_the_story_of_a_synapse_is_told_in_a_trace(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "traces.h5"
    record = ("--record", "hidden->output[2,3;1,4]:hebbian", "--record", "always->output:hebbian")
    out = ("--out", str(tmp_path / "run"), "--traces", str(path), "--watched", "20")
    assert main([*SMALL, *words, *record, *out]) == 0
    trace = read(path)
    story = trace.hebbian["hidden->output"]
    assert story.synapses == ((2, 3), (1, 4))
    assert len(story.tag) == 20 * trace.steps
    np.testing.assert_allclose(story.product, story.pre * story.post)
    assert 0 <= story.pre.min() <= story.pre.max() <= 1
    ends = np.arange(20) * trace.steps + trace.steps - 1
    moved = np.diff(np.concatenate([[story.weight[0, 0]], story.weight[ends, 0]]))
    rates = 0.1 * 0.5 * (1 + np.cos(np.pi * np.arange(20) / 20))
    size = 1 / 128 if "--bits" in words else 1e-12
    np.testing.assert_allclose(moved, rates * story.tag[ends, 0], rtol=0, atol=size)
    assert np.abs(moved).max() > 0
    weights = trace.weights["hidden->output"]
    assert weights.after is not None
    assert weights.after[2, 3] == story.weight[-1, 0]


def test_synapses_that_are_not_there_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "run"), "--traces", str(tmp_path / "a.h5"))
    assert main([*SMALL, "--record", "hidden->hidden:hebbian", *out]) == 2
    assert "connection to record" in capsys.readouterr().err
