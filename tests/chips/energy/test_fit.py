"""Constants fitted to measured runs: what tables are read, and what the runs determine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from neuro_eqprop.chips.energy.estimate import estimate_job
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.fit import fit_profile
from neuro_eqprop.chips.energy.interval import exactly
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import ChipWork
from neuro_eqprop.chips.energy.time import Duration
from neuro_eqprop.chips.profile import Profile

FOUR = [("0.065", "1e9"), ("0.067", "2e9"), ("0.075", "5e9"), ("0.09", "1e10")]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffName, Watts ,seconds,synop\n" + "".join(f"a,{w},1,{n}\n" for w, n in FOUR),
        "# on Monday\nwatts;seconds;synop\n"
        + "".join(f"{w.replace('.', ',')};1;{n}\n" for w, n in FOUR),
        "watts\tseconds\tsynop\r\n"
        + "".join(f"{1000 * float(w)}mW\t1 s\t{n}\r\n\r\n" for w, n in FOUR),
    ],
)
def test_tables_of_a_laboratory_are_read(text: str, tmp_path: Path) -> None:
    """A mark of the byte order, semicolons, units and repeated names; each row is a run."""
    runs = tmp_path / "runs.csv"
    runs.write_text(text)
    found = fit_profile("truenorth", runs)
    assert found.fit is not None
    assert len(found.fit.left_out) == len(FOUR)
    assert found.calibration["energy"].points == len(FOUR)
    cost = found.known("energy.synop")
    assert cost is not None
    assert cost.value == pytest.approx(2.78e-12, rel=0.01)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("watts [mW],seconds,synop\n65,1,1e9\n", "watts [mw]"),
        ("watts,seconds,synop,synop\n65,1,1e9,1\n", "stands twice"),
        ("watts,seconds,synop\n65,1,1e9,1\n", "4 cells for 3 columns"),
        ("watts,seconds,synop\ninf,1,1e9\n", "not finite"),
        ("watts,seconds,synop\n-1,1,1e9\n", "expected number >= 0"),
        ("watts,seconds,synop,chips\n1,1,1e9,1.5\n", "expected integer"),
        ("watts,seconds,synop,chips\n1,1,1e9,0\n", "at least one"),
        ("joules,synop\n0,1e9\n", "above zero"),
    ],
)
def test_a_table_that_is_no_measurement_is_refused(text: str, words: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text(text)
    with pytest.raises(ValueError, match=re.escape(words)):
        fit_profile("truenorth", runs)


def test_constants_far_from_the_profile_are_found_and_runs_alike_say_little() -> None:
    """The range of another load has the covariance of constants that the runs do not tell apart."""

    def runs(loads: Sequence[float], synop: float) -> list[dict[str, object]]:
        return [
            {"name": "run", "joules": 0.06 + synop * n, "seconds": 1.0, "events": {"synop": n}}
            for n in (list(loads) * 4)[:4]
        ]

    def width(profile: Profile, synops: float) -> float:
        time = Duration(exactly(1.0), "as measured")
        found = estimate_job(ChipWork({Event.SYNOP: synops}, time, 1), profile, EstimateSettings())
        assert found.joules is not None
        return found.joules.factor

    apart = fit_profile("truenorth", runs([1e9, 1e10, 3e10, 1e11], 500e-12))
    cost = apart.known("energy.synop")
    assert cost is not None
    assert cost.value == pytest.approx(500e-12, rel=0.02)
    assert any("check the units" in each for each in apart.overridden)
    alike = fit_profile("truenorth", runs([1e9], 5e-12))
    assert width(alike, 1e9) < 1.3
    assert width(alike, 1e11) > 3
    assert width(apart, 1e11) < 1.3
