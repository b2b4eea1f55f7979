"""`neuro-eqprop energy RUN`: joules per inference and per training sample on each chip."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.csv_file import write_csv
from neuro_eqprop.chips.energy.figures import plot_pareto, save_figure
from neuro_eqprop.chips.profiles.load import load_profiles, profile_names, spiking_chips
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.cli.command import (
    Command,
    UsageError,
    in_flags,
    positive_float,
    positive_int,
    run_argument,
    set_completions,
)
from neuro_eqprop.cli.options import (
    code_options,
    deadline_option,
    input_option,
    several,
    size_option,
)
from neuro_eqprop.cli.progress import stages
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.run_folder import ENERGY

if TYPE_CHECKING:
    from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport

SOFT_RESET = {"auto": None, "on": True, "off": False}
MAPPINGS = ("balanced", "least-energy", "fewest-cores")
STEPS = "1,2,4,8,16,32,64"
"""Default numbers of steps of `--curve`."""


def amount_of(dimension: str) -> Callable[[str], float]:
    """Return a parser of numbers with a unit, as the type of an option."""

    def parse(text: str) -> float:
        try:
            return parse_amount(text, dimension)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def bits_or_auto(text: str) -> int | None:
    """Return a number of bits, or None for "auto"."""
    return None if text == "auto" else positive_int(text)


def engineering_options(parser: ArgumentParser) -> None:
    """Add sample rate, supply voltage, limits, sensitivity, Pareto front and output files."""
    add = parser.add_argument
    rate = "samples a second of a chip that is always on, as 10Hz: average power"
    add("--rate", type=amount_of("Hz"), metavar="10Hz", default=10.0, help=rate)
    add("--verbose", action="store_true", help="print more than one line a chip")
    supply = "supply voltage, as 0.9V, for chips with a law of scaling (default: the profile's)"
    add("--supply", type=amount_of("V"), metavar="0.9V", help=supply)
    target = "accuracy up to which the joules of learning count, as 0.95 (default: all epochs)"
    add("--target", type=positive_float, metavar="ACCURACY", help=target)
    limit = "exit with 1 if an inference needs more joules, as 1mJ (default: no limit)"
    add("--fail-above", type=amount_of("J"), metavar="1mJ", help=limit)
    slower = "exit with 1 if an inference takes longer, as 5ms (default: no limit)"
    add("--fail-slower", type=amount_of("s"), metavar="5ms", help=slower)
    halved = "show the share of each term, and the joules if its cost were halved"
    add("--sensitivity", action="store_true", help=halved)
    front = "accuracy, joules and latency over chips, codes, steps and bits; marks the front"
    add("--pareto", action="store_true", help=front)
    steps, bits = "steps of the settings of --pareto", "bits of the settings of --pareto"
    add("--pareto-steps", type=several, default=several("4,8,16,32"), metavar="T,T,...", help=steps)
    add("--pareto-bits", type=several, default=several("8,4"), metavar="B,B,...", help=bits)
    add("--csv", type=Path, metavar="FILE", help="write a CSV file (default: none)")


def options(parser: ArgumentParser) -> None:
    """Add the options of `energy`."""
    size_option(parser)
    deadline_option(parser)

    add = parser.add_argument
    add("run", type=Path, nargs="?", metavar="RUN", help="a run folder")
    add(
        "--counts",
        type=Path,
        metavar="FILE",
        help="use the counted events of this JSON file (default: count them)",
    )
    chips = profile_names()
    name = f"a chip or a TOML file; repeatable (default: all chips): {', '.join(chips)}"
    set_completions(add("--profile", action="append", metavar="NAME", help=name), chips)
    value = "replace a value, as in loihi1.energy.synop=30pJ; repeatable"
    add("--override", action="append", default=[], metavar="CHIP.SECTION.KEY=VALUE", help=value)
    add("--samples", type=positive_int, default=32, help="samples to count events on")
    code_options(parser)
    input_option(parser, default=None)
    bits = "bits of a weight (default: auto, the widest that each chip takes, at most 8)"
    add("--bits", type=bits_or_auto, metavar="N", help=bits)
    add(
        "--batch",
        type=positive_int,
        help="batch size of the dense devices (default: all that are published)",
    )
    add(
        "--time",
        choices=("model", "tick", "sanafe"),
        help="time of a step: model, real-time tick, or SANA-FE (default: that of the profile)",
    )
    add(
        "--step-seconds",
        type=positive_float,
        help="measured time of a step in seconds (default: the timing of --time)",
    )
    overhead = "power of an idle chip (default: loaded_idle where known)"
    add("--overhead", choices=("loaded_idle", "static_and_host"), help=overhead)
    add(
        "--tag-bits",
        type=positive_int,
        help="bits of a learning tag per synapse (default: those of the profile)",
    )
    reset = "whether neurons take the compartments of a soft reset"
    add("--soft-reset", choices=tuple(SOFT_RESET), default="auto", help=reset)
    add(
        "--chips",
        type=positive_int,
        help="number of available chips (default: the largest machine of the profile)",
    )
    mapping = "what the cores are chosen for (balanced: few cores, at most twice the shortest time)"
    add("--mapping", choices=MAPPINGS, default=MAPPINGS[0], help=mapping)
    cores = "number of cores to use; slow layers get more of them (default: that of --mapping)"
    add("--cores", type=positive_int, help=cores)
    engineering_options(parser)
    add(
        "--presentations",
        type=positive_int,
        help="samples times epochs of the whole training (default: those of RUN)",
    )
    curve = (
        f"accuracy against joules over codes and steps (default: no curve; without steps: {STEPS})"
    )
    add("--curve", type=several, nargs="?", const=several(STEPS), metavar="T,T,...", help=curve)
    add(
        "--curve-samples",
        type=positive_int,
        default=500,
        metavar="N",
        help="samples per point of --curve",
    )
    add("--beside", type=Path, metavar="RUN", help="compare with a second run (default: none)")
    add("--explain", action="store_true", help="print the source of every quantity")


def run(args: Namespace) -> EnergyReport:
    """Estimate the energy, and write it into the run folder."""
    if args.run is None and args.counts is None:
        raise UsageError("energy needs a RUN to count events of, or --counts FILE")
    if args.curve and args.counts is not None:
        raise UsageError("--curve counts the events of a RUN for each point; leave out --counts")
    profiles = None
    if args.profile or args.override:
        profiles = load_profiles(args.profile or spiking_chips(), args.override)
    with stages() as progress:
        report = ne.estimate_energy(
            args.counts or args.run, profiles, progress=progress, **settings_of(args)
        )
    report = replace(report, run=args.run and str(args.run), options=tuple(given_options(args)))
    report = replace(report, sensitivity=args.sensitivity, verbose=args.verbose)
    if args.run is not None:
        report = replace(report, file=str(report.save(args.run / ENERGY)))
    return write_extras(report, args)


def settings_of(args: Namespace) -> dict[str, Any]:
    """Return the settings of `estimate_energy` that options give, by name."""
    names = [each.name for each in fields(EnergySettings) if hasattr(args, each.name)]
    given = {name: getattr(args, name) for name in names}
    return given | {"clock": args.time, "soft_reset": SOFT_RESET[args.soft_reset]}


def write_extras(report: EnergyReport, args: Namespace) -> EnergyReport:
    """Write the requested CSV file and figure, and check the limits."""
    if args.csv is not None:
        report = replace(report, csv=str(write_csv(report, args.csv)))
    if args.pareto and args.run is not None:
        figure = save_figure(plot_pareto(report), args.run / "energy_pareto.svg")
        report = replace(report, figure=str(figure))
    over = report.exceeding(joules=args.fail_above, seconds=args.fail_slower)
    return replace(report, failure="; ".join(over))


def given_options(args: Namespace) -> list[str]:
    """Return the options that differ from their defaults, as on the command line."""
    parser = ArgumentParser()
    options(parser)
    arguments: list[str] = []
    for name, default in vars(parser.parse_args([])).items():
        value = getattr(args, name)
        if name == "run" or value == default:
            continue
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif name in ("profile", "override"):
            arguments += [text for each in value for text in (flag, str(each))]
        else:
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            arguments += [flag, shown]
    return arguments


def show(report: EnergyReport, console: Console) -> None:
    """Print the report, with hints that name options."""
    hints = replace(report, estimates=tuple(map(with_flags, report.estimates)))
    hints.show(console, verbose=report.verbose)


def with_flags(each: EnergyEstimate) -> EnergyEstimate:
    """An estimate whose reasons name options of the command: bits=1 becomes --bits 1."""
    learning = replace(each.learning, reason=in_flags(each.learning.reason, options))
    each = replace(each, learning=learning)
    if each.placement is None:
        return each
    violations = tuple(
        replace(violation, reason=in_flags(violation.reason, options))
        for violation in each.placement.violations
    )
    placement = replace(each.placement, violations=violations)
    return replace(each, inference=replace(each.inference, placement=placement))


def next_step(report: EnergyReport) -> str:
    """Suggest the report of the run, or the list of profiles."""
    return "profiles list" if report.run is None else f"report {run_argument(report.run)}"


COMMAND = Command(
    "energy",
    options,
    run,
    show,
    (
        "neuro-eqprop energy runs/digits --samples 8",
        "neuro-eqprop energy runs/digits --samples 8 --profile loihi1 --code graded --explain",
    ),
    next_step,
)
