"""Imports that README and docs of version 0.1 showed still work, with a DeprecationWarning."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from neuro_eqprop._deprecated import MODULES, NAMES, ROOT

DOCUMENTED = {
    "activations": ("LINEAR", "TANH"),
    "analysis.compare": ("cosine", "update"),
    "architectures": ("looped",),
    "backends.base": ("load",),
    "backends.brian2_biology": ("BASE", "NOISY", "Biology", "Brian2Biology", "settle"),
    "backends.from_nir": ("from_nir",),
    "backends.nir_assume": ("Assumptions",),
    "claims.cells": (),
    "claims.intervals": (),
    "claims.rows": ("IDS",),
    "data": ("generate", "hold_out", "returns"),
    "data.control": ("balance",),
    "files.countsfile": (),
    "files.nwb": ("to_nwb",),
    "files.tracefile": ("Writer", "read"),
    "learn.train": (),
    "rate.from_torch": ("from_torch", "normalised"),
    "schedules": ("contrast", "free_only"),
    "spiking.ir": ("Population", "Projection", "Reset", "Spiking", "SpikingNetwork", "Stimulus"),
    "spiking.lower": ("Code", "Coding", "rates_of", "stimulate"),
    "spiking.quantise": ("quantise",),
    "spiking.rounding": ("Rounding",),
    "study.conversion": ("keep", "loss"),
    "study.evaluation": ("agreement", "equilibria", "spiking"),
    "study.folder": ("open_run",),
    "study.settings": ("Study",),
    "study.training": ("run_training",),
    "synapses": ("Story",),
    "testing": ("check_backend",),
    "traces": ("NOTHING", "Kind", "Memory", "Origin", "Plan", "Recording", "choose"),
}
"""Modules and names that README, docs and notebooks of version 0.1 imported."""

PACKAGES = {old for old in MODULES if any(other.startswith(f"{old}.") for other in MODULES)}


def forget(module: str) -> None:
    sys.modules.pop(ROOT + module, None)


@pytest.mark.parametrize("module", DOCUMENTED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_documented_in_version_0_1_still_import(module: str) -> None:
    found = import_module(ROOT + module)
    for name in DOCUMENTED[module]:
        assert getattr(found, name) is not None


@pytest.mark.parametrize("old", sorted(set(MODULES) - PACKAGES))
def test_importing_a_moved_module_warns_and_names_the_new_module(old: str) -> None:
    forget(old)
    message = f"{ROOT}{old} is deprecated: use {ROOT}{MODULES[old]}"
    with pytest.warns(DeprecationWarning, match=f"^{message}$") as caught:
        import_module(ROOT + old)
    assert len(caught) == 1


@pytest.mark.parametrize("old", NAMES)
@pytest.mark.filterwarnings("ignore:neuro_eqprop.* is deprecated:DeprecationWarning")
def test_a_renamed_name_warns_and_is_the_new_object(old: str) -> None:
    module, _, name = old.partition(":")
    new, _, there = NAMES[old].partition(":")
    holder = import_module(ROOT + module)
    with pytest.warns(DeprecationWarning, match=f"use {ROOT}{new}.{there}$"):
        found = getattr(holder, name)
    assert found is getattr(import_module(ROOT + new), there)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_names_of_a_moved_package_come_from_the_new_one(package: str) -> None:
    assert import_module(ROOT + package).__doc__ == f"Deprecated: use {ROOT}{MODULES[package]}."


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_name_that_never_was_is_an_attribute_error() -> None:
    for module in ("synapses", "data"):
        with pytest.raises(AttributeError, match="nothing"):
            import_module(ROOT + module).nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import_module(ROOT + "study.nothing")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("from neuro_eqprop.data.control import balance", "neuro_eqprop.data.control"),
        ("from neuro_eqprop.data import generate", "neuro_eqprop.data.generate"),
    ],
)
def test_a_script_sees_the_warning_at_its_own_line(line: str, named: str) -> None:
    words = [sys.executable, "-c", f"import neuro_eqprop\n{line}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(f"<string>:2: DeprecationWarning: {named} is deprecated: use ")
