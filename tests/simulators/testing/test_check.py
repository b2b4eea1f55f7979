"""The public conformance check of a backend."""

from __future__ import annotations

import doctest
from dataclasses import replace
from typing import Any

import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.testing import CASES, check, check_backend, check_case


def test_the_example_of_check_backend_runs() -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for example in finder.find(check.check_backend, globs={}):
        runner.run(example)
    assert runner.tries >= 3
    assert runner.failures == 0


def test_an_unknown_name_lists_the_backends_closest_first() -> None:
    with pytest.raises(UnknownNameError, match="unknown backend 'emulatr'; known: emulator, "):
        check_backend("emulatr")


def test_a_backend_that_is_not_exact_is_refused_with_its_reason() -> None:
    with pytest.raises(ValueError, match="lava-stock cannot be compared spike by spike: Lava's"):
        check_backend("lava-stock")


def test_a_difference_is_named_in_plain_numbers() -> None:
    class Late(Reference):
        def run(self, *arguments: Any, **options: Any) -> Result:  # noqa: ANN401
            result = super().run(*arguments, **options)
            name = next(iter(result.firing))
            firing = {**result.firing, name: result.firing[name] + 0.5}
            return replace(result, firing=firing)

    with pytest.raises(AssertionError, match=r"firing is \d\.\d+, in the reference \d\.\d+$"):
        check_case(Late(), CASES[0])
