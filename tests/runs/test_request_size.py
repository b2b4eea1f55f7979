"""Absurd requests are refused in one sentence before anything runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.runs.request_size import TooLargeError, allow_large, check_request


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("evaluate", "RUN", "--on", "emulator", "--steps", f"1{0:020}"), 2, "too large"),
        (("evaluate", "RUN", "--on", "emulator", "--steps", f"1{0:012}"), 1, "of memory"),
        (("evaluate", "RUN", "--on", "emulator", "--steps", f"2{0:09}"), 1, "--yes"),
        (("simulate", "RUN", "--on", "rate", "--steps", f"2{0:09}", "--traces", "T"), 1, "--yes"),
        (("train", "--dataset", "digits", "--epochs", f"1{0:012}", "--out", "O"), 1, "epochs"),
        (("learn", "--dataset", "digits", "--free", f"1{0:012}", "--out", "O"), 1, "of memory"),
        (("evaluate", "RUN", "--on", "emulator", "--steps", f"1{0:09}"), 1, "steps"),
        (("evaluate", "RUN", "--on", "reference", "--steps", f"1{0:07}"), 1, "reference is estim"),
        (("evaluate", "RUN", "--on", "brian2", "--steps", f"1{0:07}"), 1, "brian2 is estimated to"),
        (("evaluate", "RUN", "--on", "reference", "--workers", "1000000"), 2, "--workers must be"),
        (("energy", "RUN", "--steps", f"1{0:09}"), 1, "--yes"),
        (("learn", "--dataset", "digits", "--epochs", f"1{0:09}", "--out", "O"), 1, "--yes"),
        (("train", "--set", f"free_steps=1{0:012}", "--out", "O"), 1, "--yes"),
        (("train", "--hidden", f"1{0:09}", "--out", "O"), 1, "of memory"),
        (("train", "--set", "lr_schedule=StepLR(step_size=0)", "--out", "O"), 1, "StepLR"),
    ],
)
def test_an_absurd_request_is_refused_at_once(
    words: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    trained_run: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"RUN": str(trained_run), "T": str(tmp_path / "t.h5"), "O": str(tmp_path / "o")}
    began = time.process_time()
    try:
        found = main([places.get(word, word) for word in words])
    except SystemExit as error:
        found = int(str(error.code))
    assert found == code
    written = capsys.readouterr().err
    assert said in written
    assert "Traceback" not in written
    assert time.process_time() - began < 20
    assert not list(tmp_path.iterdir())


def test_time_can_be_allowed_and_memory_cannot() -> None:
    with allow_large():
        check_request("it", seconds=1e12, steps=10**12)
        with pytest.raises(TooLargeError, match="of memory, and this computer has"):
            check_request("it", held=1e18)
    with pytest.raises(TooLargeError, match=r"it is estimated to take 3\.17e\+04 years"):
        check_request("it", seconds=1e12)
