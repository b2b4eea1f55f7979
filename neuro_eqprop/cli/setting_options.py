"""Command-line options for the settings of a study, with help from their definitions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import Field
from typing import Any

from neuro_eqprop.cli.command import UsageError, set_completions
from neuro_eqprop.common.settings import limits_of, settings_of
from neuro_eqprop.data import DATASETS
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.training.defaults import DERIVED
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import TrainingSettings
from neuro_eqprop.training.study import Study, make_study


def add_settings(parser: ArgumentParser, keys: Iterable[str]) -> None:
    """Add an option for each setting in `keys`, and `--set` for all others."""
    for key in keys:
        action = parser.add_argument(flag(key), metavar=metavar(key), help=setting_help(key))
        set_completions(action, names_of(key))
    every = (
        "any other setting, such as free_steps=20 or model.kernel=3; repeatable; "
        "the page Settings of the documentation lists them"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=every)


def flag(key: str) -> str:
    """The option of a setting."""
    return f"--{key.replace('_', '-')}"


def given_settings(args: Namespace, keys: Iterable[str]) -> dict[str, str]:
    """The settings of `keys` and of `--set` that the command line gives, as text."""
    given = {key: getattr(args, key) for key in keys if getattr(args, key) is not None}
    for pair in args.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {pair!r}")
        given[key] = value
    return given


def names_of(key: str) -> tuple[str, ...]:
    """Return the names that a setting takes; empty if it does not take names."""
    registries: dict[str, Iterable[str]] = {"dataset": DATASETS, "model": MODELS, "rule": RULES}
    if key in registries:
        return tuple(registries[key])
    return tuple(name for name in limits_of(field_of(key)).choices or () if name)


def metavar(key: str) -> str:
    """Return the placeholder for the value of an option."""
    if key == "dataset":
        return "NAME|FILE"
    return placeholder(Study().get(key))


def placeholder(default: object) -> str:
    """The placeholder of a value of the type of this default."""
    if isinstance(default, tuple):
        return "N[,N...]"
    return {int: "N", float: "X"}.get(type(default), "NAME")


def setting_help(key: str) -> str:
    """Return the help text of a setting: meaning, choices and defaults."""
    if key == "model":
        return f"network to train: {', '.join(MODELS)} (default {Study().model.name})"
    if key == "rule":
        rules = [name for name in RULES if not RULES[name].baseline]
        baselines = [name for name in RULES if RULES[name].baseline]
        names = f"{', '.join(rules)}; baselines: {', '.join(baselines)}"
        return f"update rule: {names} (default {defaults(key)})"
    stated = limits_of(field_of(key))
    choices = tuple(DATASETS) if key == "dataset" else stated.choices
    names = f": {', '.join(choices)}" if choices else ""
    usual = f"derived, with --preset chip {defaults(key)}" if key in DERIVABLE else defaults(key)
    return f"{stated.help}{names} (default {usual})"


DERIVABLE = frozenset(each.setting for each in DERIVED)
"""Settings whose default is derived from the model and the data."""


def field_of(key: str) -> Field[Any]:
    """Return the field of a setting, from the first model or rule that has it."""
    tables: Iterable[Any] = (
        Study,
        TrainingSettings,
        *(rule.settings for rule in RULES.values()),
        *(type(model.settings()) for model in MODELS.values()),
    )
    return next(settings_of(table)[key] for table in tables if key in settings_of(table))


def defaults(key: str) -> str:
    """Return the default of a setting, and those of models that differ."""
    general = Study().flat()
    found: dict[str, list[str]] = {}
    for model in MODELS:
        value = make_study(model=model).get(key)
        if value is not None and value != general.get(key):
            found.setdefault(shown(value), []).append(model)
    others = "; ".join(f"{value} for {', '.join(models)}" for value, models in found.items())
    first = shown(general[key]) if key in general else ""
    return "; ".join(part for part in (first, others) if part)


def shown(value: object) -> str:
    """Format a value for the command line."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
