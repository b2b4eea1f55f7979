"""Random recurrent networks over a thousand steps: every spike the reference's, on each simulator.

`sims/spikes/agreement.py` does the same with fifty networks, in floating and in fixed point.
"""

from __future__ import annotations

import pytest

from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import check_case, draw_case
from neuro_eqprop.simulators.testing.case import run_case
from neuro_eqprop.simulators.testing.random_networks import draw_whole_case, lengthened

LAVA = [pytest.mark.lava, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("emulator", number) for number in range(8)),
        *(pytest.param("snntorch", n, marks=pytest.mark.snntorch) for n in range(2)),
        pytest.param("brian2", 3, marks=[pytest.mark.brian2, pytest.mark.slow]),
        pytest.param("lava", 3, marks=LAVA),
    ],
)
def test_a_thousand_steps_in_floating_point(name: str, number: int) -> None:
    check_case(load_backend(name), lengthened(draw_case(11, number), 1000))


@pytest.mark.parametrize(
    ("name", "number"),
    [*(("emulator", number) for number in range(4)), pytest.param("lava", 3, marks=LAVA)],
)
def test_a_thousand_steps_in_fixed_point(name: str, number: int) -> None:
    check_case(load_backend(name), lengthened(draw_whole_case(11, number), 1000))


def test_a_lengthened_case_has_one_sample_and_goes_on_sending() -> None:
    case = lengthened(draw_case(11, 0), 1000)
    assert sum(phase.steps for phase in case.schedule) == 1000
    recordings = run_case(load_backend("reference"), case).recordings
    assert len(recordings) == 1
    assert all(raster[-100:].any() for raster in recordings[0].spikes.values())
