"""The fixed-point step equals Brian2Loihi, an independent emulator of Loihi's arithmetic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from neuro_eqprop.simulators.brian2.setup import simulator

pytest.importorskip("brian2_loihi", reason="brian2-loihi is not installed")
pytestmark = [
    pytest.mark.brian2,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of pyparsing, in Brian2
]
SCRIPT = Path(__file__).parents[2] / "sims" / "loihi" / "witness.py"
STEPS = 300


@pytest.fixture(scope="module")
def witness() -> ModuleType:
    spec = spec_from_file_location("loihi_witness", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    """Each of its networks would be compiled, which takes longer than to run it in NumPy."""
    codegen = simulator().prefs.codegen
    before, codegen.target = codegen.target, "numpy"
    yield
    codegen.target = before


@pytest.mark.parametrize("index", [2, 4, 6])
def test_voltages_and_spikes_equal_those_of_brian2_loihi(witness: ModuleType, index: int) -> None:
    case = replace(witness.CASES[index], steps=STEPS)
    ours = witness.ours(case)
    theirs = witness.brian2_loihi(case, ours.fed)
    assert ours.spikes.sum() > 10
    assert witness.first_difference(ours, theirs) is None


def test_only_a_voltage_at_the_threshold_separates_the_comparisons(witness: ModuleType) -> None:
    case = replace(witness.TIE, steps=STEPS)
    ours = witness.ours(case)
    theirs = witness.brian2_loihi(case, ours.fed, threshold=">")
    first = witness.first_difference(ours, theirs)
    assert first is not None
    late = theirs.voltage[first][ours.spikes[first] != theirs.spikes[first]]
    assert set(late) == {case.threshold * 64}


def test_a_current_beyond_24_bits_wraps_here_alone(witness: ModuleType) -> None:
    case = replace(witness.OVERFLOW, steps=STEPS)
    ours = witness.ours(case)
    assert ours.overflows > 0
    assert witness.first_difference(ours, witness.brian2_loihi(case, ours.fed)) is not None
