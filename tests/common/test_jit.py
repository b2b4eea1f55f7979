from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from numba.core import config

from neuro_eqprop.common import jit
from neuro_eqprop.common.compile_time import compile_timer

SOURCE = """
from neuro_eqprop.common.jit import outer

@outer
def power(x, n):
    result = x
    for _ in range(n):
        result = result * x
    return result
"""


def power_of(folder: Path) -> Any:  # noqa: ANN401
    """The function of a new module, as a new process would import it."""
    path = folder / "power.py"
    if not path.exists():
        path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("power", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.power


@pytest.fixture
def in_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of a module lies beside it, as usual."""
    monkeypatch.setattr(config, "CACHE_DIR", "")


def compiled_for(power: Any) -> float:  # noqa: ANN401
    """The seconds of compilation of a call."""
    with compile_timer() as timer:
        assert power(2.0, 3) == 16.0
    return timer.seconds


@pytest.mark.usefixtures("in_tree")
def test_code_on_disk_is_loaded(tmp_path: Path) -> None:
    assert compiled_for(power_of(tmp_path)) > 0.0
    assert compiled_for(power_of(tmp_path)) == 0.0


@pytest.mark.usefixtures("in_tree")
@pytest.mark.parametrize("seed", range(12))
def test_damaged_code_on_disk_is_made_anew(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    power_of(tmp_path)(2.0, 3)
    (file,) = (tmp_path / "__pycache__").glob("*.nbc")
    content = bytearray(file.read_bytes())
    match seed % 4:
        case 0:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        case 1:
            del content[random.randrange(len(content)) :]
        case 2:
            content.clear()
        case _:
            start = random.randrange(len(content))
            content[start : start + 64] = random.randbytes(64)
    file.write_bytes(content)
    assert compiled_for(power_of(tmp_path)) > 0.0
    assert compiled_for(power_of(tmp_path)) == 0.0


@pytest.mark.usefixtures("in_tree")
def test_the_cache_may_vanish_or_have_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    power = power_of(tmp_path)
    power(2.0, 3)
    shutil.rmtree(tmp_path / "__pycache__")
    assert power(2, 3) == 16
    assert power_of(tmp_path)(2.0, 3) == 16.0

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert power_of(tmp_path)(2 + 0j, 3) == 16.0


def test_without_a_folder_for_the_cache_functions_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    def double(x: float) -> float:
        return 2.0 * x

    monkeypatch.setattr(jit, "VerifiedCache", nowhere)
    assert jit.outer(double)(1.5) == 3.0


def test_the_configuration_of_the_current_folder_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".numba_config.yaml").write_text("opt: 0\n")
    monkeypatch.chdir(tmp_path)
    before = vars(config)["OPT"]
    vars(config)["reload_config"]()
    assert before == vars(config)["OPT"]


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


def test_options_that_this_numba_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jit.supported(forceinline=True, not_there=True) == {"forceinline": True}
    monkeypatch.delattr(jit.NUMBA.cpu, "CPUTargetOptions")
    assert jit.supported(forceinline=True) == {}
