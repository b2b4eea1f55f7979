"""Options of the backend brian2-biology, for the commands that run it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from neuro_eqprop.cli.command import UsageError
from neuro_eqprop.simulators.brian2.options import biology

if TYPE_CHECKING:
    from neuro_eqprop.simulators.base import Backend

NAME = "brian2-biology"
POISSON = "poisson"
"""Value of `--input` for Poisson spike trains."""
OPTIONS = {
    "neuron": ("NAME", "lif, adex, conductance or izhikevich (default lif)"),
    "tau_m": ("TIME", "membrane time constant, as 20ms (default: no leak, or the model's)"),
    "tau_syn": ("TIME", "time constant of the synaptic current (default 5ms)"),
    "refractory": ("TIME", "refractory period of a held membrane (default 1/rmax, or the model's)"),
    "noise": ("X", "noise of the membrane, in thresholds (default 0)"),
    "delay": ("TIME", "time from a spike to its arrival (default 0s)"),
    "dale": ("HOW", "Dale's law by pairs or by interneurons (default neither)"),
    "rmax": ("RATE", "firing rate of a unit whose rate is one, as 100Hz (default 100Hz)"),
    "dt": ("TIME", "time step of the integration (default 1ms, or the model's)"),
    "record_dt": ("TIME", "interval of recordings, as 0.1ms (default 1/rmax)"),
    "noise_seed": ("N", "seed of noise and Poisson input (default 0)"),
}
"""Options by name: placeholder and help."""


def biology_options(parser: ArgumentParser) -> None:
    """Add the options of the backend brian2-biology."""
    group = parser.add_argument_group(f"options of --on {NAME}; times and rates with their unit")
    for name, (place, meaning) in OPTIONS.items():
        group.add_argument(f"--{name.replace('_', '-')}", metavar=place, help=meaning)
    meaning = "a parameter of the neuron model, as a=4nS; repeatable"
    group.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help=meaning
    )


def given_options(args: Namespace) -> dict[str, str | float | bool]:
    """Return the given options by name."""
    found: dict[str, str | float | bool] = {
        name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None
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
    if options and args.on != NAME:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise UsageError(f"{flags}: options of --on {NAME}, not of --on {args.on}")
    if not options:
        return str(args.on)

    try:
        return biology(**options)
    except ValueError as error:
        raise UsageError(str(error)) from error
