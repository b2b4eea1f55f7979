"""How loops are compiled."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from neuro_eqprop.common import jit
from neuro_eqprop.common.compile_time import compile_timer


def test_what_cannot_be_kept_on_disk_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    njit, asked = numba.njit, []

    def nowhere(*, cache: bool = False, **options: Any) -> Any:  # noqa: ANN401
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    def double(x: float) -> float:
        return 2.0 * x

    with monkeypatch.context() as patch:
        patch.setattr(numba, "njit", nowhere)
        made = jit.outer(double)
    assert (asked, made(1.5), made is not double) == ([True, False], 3.0, True)


def test_the_time_of_compilation_is_measured_apart_from_that_of_a_run() -> None:
    @jit.inner
    def twice(x: float) -> float:
        return 2.0 * x

    with compile_timer() as first:
        twice(1.0)
    with compile_timer() as second:
        twice(2.0)
    assert first.seconds > 0.0
    assert second.seconds == 0.0
