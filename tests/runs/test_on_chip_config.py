"""Settings of learning on a chip: defaults, limits, and the table [learn] of a study file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.settings import limits_of
from neuro_eqprop.runs.on_chip_config import (
    OnChipConfig,
    SettingsError,
    flat_settings,
    learning_settings,
    make_config,
    read,
    write,
)
from neuro_eqprop.spiking.codes import CODES, learning_codes

VERSION_01 = Path(__file__).parent / "version_0_1" / "learn-rate.toml"


def test_every_setting_has_a_help_text() -> None:
    assert all(limits_of(field).help for field in fields(OnChipConfig))


def test_settings_survive_their_file(tmp_path: Path) -> None:
    given = learning_settings({"hidden": "8,6", "code": "rate", "bits": "6", "run_on": True})
    (tmp_path / "study.toml").write_text(write(*given))
    assert read(tmp_path / "study.toml") == given
    assert learning_settings(flat_settings(*given)) == given


def test_a_study_file_of_version_0_1_opens_with_its_table_learn() -> None:
    study, config = read(VERSION_01)
    assert (study.training.epochs, study.training.batch, study.get("hidden")) == (2, 1, (32,))
    assert config == make_config({"code": "rate", "samples": 200})


@pytest.mark.parametrize("code", learning_codes())
def test_phases_have_the_steps_of_their_code(code: str, tmp_path: Path) -> None:
    policy = CODES[code].learning
    assert policy is not None
    (tmp_path / "study.toml").write_text(f'[learn]\ncode = "{code}"\n')
    for config in (make_config({"code": code}), read(tmp_path / "study.toml")[1]):
        assert config.settle + config.window == policy.steps
    assert make_config({"code": code, "window": 3}, steps=12).window == 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"bits": 1}, "2 to 16 bits"),
        ({"tau": 0}, "tau is 0.0; it must be above zero"),
        ({"samples": -1}, "samples is -1; it cannot be negative"),
        ({"tasks": 0}, "tasks is 0; it must be at least 1"),
        ({"window": -1}, "window is -1"),
        ({"dead": 1.5}, "dead is 1.5"),
        ({"steps": "many"}, "setting 'steps' cannot be 'many'"),
        ({"on": "rate", "bits": 8}, "rates have no bits"),
        ({"epochs": 0}, "epochs is 0"),
    ],
)
def test_values_outside_their_limits_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        learning_settings(given)


def test_an_error_in_a_study_file_names_file_and_table(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("[learn]\nbits = 1\n")
    with pytest.raises(ValueError, match=r"study.toml: learn: bits is 1"):
        read(path)
    path.write_text("learn = 3\n")
    with pytest.raises(ValueError, match=r"study.toml: learn: 3 is not a table"):
        read(path)
    path.write_text("[learn]\nwindw = 1\n")
    with pytest.raises(UnknownNameError, match="known: window"):
        read(path)


def test_many_samples_have_defaults_of_their_own() -> None:
    few, many = learning_settings({}, 1437), learning_settings({}, 60000)
    assert (few[0].training.learning_rate, many[0].training.learning_rate) == (0.05, 0.02)
    assert few[1] == many[1]
    fixed = learning_settings({"bits": 8}, 60000)[1]
    assert (fixed.bound, fixed.margin) == (0.5, 0.1)
    spikes = learning_settings({"code": "rate"}, 60000)[1]
    assert (spikes.free, spikes.settle, spikes.window, spikes.tau) == (32, 16, 48, 4.0)


@pytest.mark.parametrize(
    "given",
    [
        {"learning_rate": 0.1, "margin": 0.0, "limit": 2.0, "bits": 8},
        {"code": "rate", "steps": 20, "margin": 0.3},
        {"code": "rate", "window": 5},
        {"samples": 1000, "code": "rate"},
        {"batch": 8},
        {"on": "rate"},
    ],
)
def test_what_is_stated_stands_with_many_samples(given: dict[str, object]) -> None:
    study, config = learning_settings(given, 60000)
    assert {key: flat_settings(study, config)[key] for key in given if key != "steps"} == {
        key: value for key, value in given.items() if key != "steps"
    }
    plain = learning_settings(given)[1]
    assert (config.settle, config.window) == (plain.settle, plain.window)
