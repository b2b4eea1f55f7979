"""A report of a run never fails on trace files that fit it, in whatever combination."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.html_report.contents import read_contents
from neuro_eqprop.html_report.page import render
from neuro_eqprop.simulators.biology.simulator import biology

DRAWN = 6
"""Combinations of files that are tried, beside every single file and the pairs with rates."""


def record_all(run: Run) -> list[str]:
    """Trace files of different samples, phases, simulators and populations."""
    folder = run.path
    run.record(on="rate", samples=6, steps=20, phases=True, out=folder / "rate.h5", force=True)
    run.record(
        on="emulator", samples=3, steps=20, phases=True, out=folder / "traces.h5", force=True
    )
    run.record(on="emulator", samples=1, steps=16, out=folder / "short.h5", code="graded")
    run.record(
        on=biology(dale="interneurons", poisson=True),
        samples=4,
        phases=True,
        input="rate",
        out=folder / "dale.h5",
        code="rate",
        steps=8,
    )
    run.record(
        on=biology(neuron="conductance", dt="1ms"),
        samples=2,
        repeats=3,
        out=folder / "repeats.h5",
        record=["hidden:voltage"],
        code="rate",
        steps=8,
    )
    return ["rate.h5", "traces.h5", "short.h5", "dale.h5", "repeats.h5"]


def test_every_combination_of_files_makes_a_page(trained_run: Path, tmp_path: Path) -> None:
    names = record_all(open_run(copytree(trained_run, tmp_path / "run")))
    every = [set(some) for n in range(1, len(names) + 1) for some in combinations(names, n)]
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    chosen = [some for some in every if len(some) == 1 or (len(some) == 2 and "rate.h5" in some)]
    drawn = np.random.default_rng(seed).choice(len(every), DRAWN, replace=False)
    for some in [*chosen, *(every[k] for k in drawn)]:
        folder = copytree(tmp_path / "run", tmp_path / "-".join(sorted(some)), dirs_exist_ok=True)
        for name in names:
            if name not in some:
                (folder / name).unlink(missing_ok=True)
        page = render(read_contents(folder))
        assert "</html>" in page, some


def test_rates_without_nudged_phases_stand_beside_spikes_with_them(
    trained_run: Path, tmp_path: Path
) -> None:
    run = open_run(copytree(trained_run, tmp_path / "run"))
    run.record(on="rate", samples=2, steps=20, out=run.path / "rate.h5", force=True)
    run.record(
        on="emulator", samples=3, steps=20, phases=True, out=run.path / "traces.h5", force=True
    )
    assert "</html>" in render(read_contents(run.path))


@pytest.mark.parametrize("repeats", [0, -1])
def test_samples_are_shown_once_or_more(repeats: int, trained_run: Path, tmp_path: Path) -> None:
    run = open_run(trained_run)
    with pytest.raises(ValueError, match="show the samples once or more"):
        run.record(on="emulator", samples=2, repeats=repeats, out=tmp_path / "t.h5")
