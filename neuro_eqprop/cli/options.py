"""Options that several commands share: each is declared here, once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from neuro_eqprop.cli.command import positive_float, positive_int, set_completions
from neuro_eqprop.data import DATASETS
from neuro_eqprop.runs.request_size import DEADLINE_HELP
from neuro_eqprop.runs.run_folder import TRACES
from neuro_eqprop.spiking.codes import CODES
from neuro_eqprop.spiking.input_coding import INPUT_CODINGS

BITS_HELP = "bits of integer weights, in fixed point (default: floating point)"
DEFAULT_TRACE = Path()
"""Value of `--traces` without a path: the trace file of the run folder."""


def size_option(parser: ArgumentParser) -> None:
    """Add `--yes`, which allows requests that are estimated to take longer than a week."""
    meaning = "run it even if it is estimated to take longer than a week"
    parser.add_argument("--yes", action="store_true", help=meaning)


def deadline_option(parser: ArgumentParser) -> None:
    """Add `--deadline`, the time limit of the simulations of a command."""
    parser.add_argument("--deadline", type=positive_float, metavar="S", help=DEADLINE_HELP)
    parser.set_defaults(simulates=True)


def several(text: str) -> list[int]:
    """Numbers of steps, separated by commas."""
    return [positive_int(part) for part in text.split(",")]


def some(text: str) -> int | None:
    """A number of samples, or all of them."""
    return None if text == "all" else positive_int(text)


def source_options(parser: ArgumentParser) -> None:
    """Add the run folder, or a NIR file and a data set."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder, or NET.nir")
    names = ", ".join(DATASETS)
    meaning = f"with NET.nir: an .npz file, or a data set by name: {names} (default: that of RUN)"
    set_completions(parser.add_argument("--dataset", metavar="NAME", help=meaning), DATASETS)


def code_options(parser: ArgumentParser) -> None:
    """Add the options of the spike code, shared by all commands that make spikes."""
    steps = ", ".join(f"{code.steps} for {name}" for name, code in CODES.loadable().items())
    parser.add_argument("--steps", type=positive_int, help=f"steps of a phase (default {steps})")
    codes = f"spike code: {', '.join(CODES)} (default rate, or that of NET.nir)"
    set_completions(parser.add_argument("--code", metavar="CODE", help=codes), CODES)


def input_option(parser: ArgumentParser, default: str | None = "current") -> None:
    """Add the option for the input coding; with default None, as spikes on the chip."""
    known = ", ".join(f"{name} ({each.summary})" for name, each in INPUT_CODINGS.loadable().items())
    meaning = f"how the input is fed: {known}"
    if default is None:
        meaning += " (default: as spikes on the chip, rate or graded as the code has it)"
    action = parser.add_argument("--input", default=default, metavar="HOW", help=meaning)
    set_completions(action, INPUT_CODINGS)


def trace_path(args: Namespace) -> Path | None:
    """The trace file of `--traces`, which without a value is that of the run folder `--out`."""
    path: Path | None = args.out / TRACES if args.traces == DEFAULT_TRACE else args.traces
    return path
