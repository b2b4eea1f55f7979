"""Options of the backends in continuous time, for the commands that run them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from neuro_eqprop.cli.command import UsageError
from neuro_eqprop.simulators.biology.options import OPTIONS, make_biology
from neuro_eqprop.simulators.biology.settings import CONTINUOUS
from neuro_eqprop.simulators.registry import load_backend

if TYPE_CHECKING:
    from neuro_eqprop.simulators.base import Backend

POISSON = "poisson"
"""Value of `--input` for Poisson spike trains, and the option that it sets."""
PLACEHOLDERS = {"s": "TIME", "Hz": "RATE"}
"""Placeholders of options with a unit."""


def biology_options(parser: ArgumentParser) -> None:
    """Add the options of the backends in continuous time."""
    names = " and ".join(CONTINUOUS)
    group = parser.add_argument_group(f"options of --on {names}; times and rates with their unit")
    for name, option in OPTIONS.items():
        if name != POISSON:
            place = PLACEHOLDERS.get(option.unit, "X")
            described = f"{option.meaning} (default {option.default})"
            group.add_argument(f"--{name.replace('_', '-')}", metavar=place, help=described)
    meaning = "a parameter of the neuron model, as a=4nS; repeatable"
    group.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help=meaning
    )


def given_options(args: Namespace) -> dict[str, str | float | bool]:
    """Return the given options by name."""
    found: dict[str, str | float | bool] = {
        name: getattr(args, name) for name in OPTIONS if getattr(args, name, None) is not None
    }
    for pair in args.parameter:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--parameter takes NAME=VALUE, not {pair!r}")
        found[name] = value
    return found


def backend_of(args: Namespace) -> str | Backend:
    """Return the simulator of `--on`, with its options."""
    options = given_options(args)
    if getattr(args, "input", None) == POISSON:
        options["poisson"] = True
        args.input = "rate"
    if options and args.on not in CONTINUOUS:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise UsageError(f"{flags}: options of --on {CONTINUOUS[0]}, not of --on {args.on}")
    if not options:
        return str(args.on)
    try:
        made = make_biology(**options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return cast("Backend", replace(cast(Any, load_backend(args.on)), biology=made))
