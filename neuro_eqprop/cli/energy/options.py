"""More of `energy`: accuracy for joules over steps and codes, and two runs side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuro_eqprop.cli.command import Json, positive_int
from neuro_eqprop.cli.evaluate import several

if TYPE_CHECKING:
    from neuro_eqprop.energy.estimate import Options
    from neuro_eqprop.energy.pareto import Point
    from neuro_eqprop.experiments.evaluate import CountedRun
    from neuro_eqprop.hardware.profile import Profile
    from neuro_eqprop.hardware.workload import Workload

SWEEP = "1,2,4,8,16,32,64"
"""Steps of the curve."""
CODES = ("rate", "graded")
"""Codes of the curve, besides the one that is asked for; and `paired` where `rate` cannot."""


def curve_options(parser: ArgumentParser) -> None:
    """What the curve of accuracy against joules goes over."""
    told = f"accuracy against joules over codes and steps ({SWEEP})"
    parser.add_argument("--curve", type=several, nargs="?", const=several(SWEEP), help=told)
    parser.add_argument(
        "--curve-samples", type=positive_int, default=500, metavar="N", help="samples of a point"
    )


def given(args: Namespace, defaults: Namespace) -> list[str]:
    """The options of a call that are not the defaults, as they are typed."""
    words: list[str] = []
    for name, default in vars(defaults).items():
        value = getattr(args, name)
        if name == "run" or value == default:
            continue
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif name in ("profile", "override"):
            words += [word for each in value for word in (flag, str(each))]
        else:
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [flag, shown]
    return words


def workload_of(found: CountedRun, *, bits: int | None) -> Workload:
    """What a run did, and its shapes with weights of so many bits."""
    from neuro_eqprop.hardware.workload import Workload, describe

    shapes = describe(found.network, bits=bits or 8, outside=found.outside)
    told = (found.samples, found.steps, found.input_coding, found.dense_macs)
    return Workload(shapes, found.counts, *told)


def curve(args: Namespace, chips: list[Profile], how: Options) -> Json:
    """Of each chip, accuracy against joules: each point's run gives its accuracy and its counts.

    A code the network cannot be translated to is left out, with the reason.
    """
    from neuro_eqprop.cli.energy.json import trade_json
    from neuro_eqprop.cli.progress import bar

    if args.run is None or args.counts is not None:
        raise ValueError("--curve runs a RUN again and again; it cannot use --counts")
    codes = list(dict.fromkeys([*CODES, args.code]))
    points: dict[str, list[Point]] = {}
    told: Json = {"samples": 0, "steps": args.curve, "left_out": {}}
    with bar("accuracy for joules", len(codes) * len(args.curve)) as advance:
        for code in codes:
            found, why = able(args, code, lambda: advance(1, "settings"))
            if why:
                told["left_out"][code] = why
            if why and code == "rate" and "paired" not in codes:
                codes.append("paired")
            for each in found:
                told["samples"] = each.samples
                for name, point in priced(each, chips, how, code=code, bits=args.bits):
                    points.setdefault(name, []).append(point)
    return {"curve": {n: trade_json(each) for n, each in points.items()}, "curve_counted": told}


def able(args: Namespace, code: str, done: Callable[[], None]) -> tuple[list[CountedRun], str]:
    """The runs in a code, or none and why."""
    from neuro_eqprop.spiking.codes import LoweringError
    from neuro_eqprop.spiking.rounding import QuantisationError

    found = []
    try:
        for each in runs(args, code):
            found.append(each)
            done()
    except (LoweringError, QuantisationError) as error:
        return [], str(error)
    return found, ""


def runs(args: Namespace, code: str) -> Iterator[CountedRun]:
    """The run on the emulator for each number of steps, in a code."""
    from neuro_eqprop.experiments.evaluate import count_events
    from neuro_eqprop.experiments.run_folder import open_run
    from neuro_eqprop.spiking.codes import find_code
    from neuro_eqprop.spiking.input_coding import InputCoding, find_input_coding

    opened, entry = open_run(args.run), find_input_coding(args.input)
    if entry is not InputCoding.CURRENT:
        entry = InputCoding.GRADED if find_code(code).accumulates else InputCoding.RATE
    for steps in args.curve:
        yield count_events(
            opened.model,
            opened.test_samples(min(args.curve_samples, len(opened.data.test))),
            steps=steps,
            code=code,
            bits=args.bits,
            input=entry,
        )


def priced(
    found: CountedRun, chips: Iterable[Profile], how: Options, *, code: str, bits: int | None
) -> Iterator[tuple[str, Point]]:
    """One point of the curve for each chip whose joules are known."""
    from neuro_eqprop.energy.estimate import bill
    from neuro_eqprop.energy.pareto import Point
    from neuro_eqprop.hardware.placement import Verdict

    workload = workload_of(found, bits=bits)
    for chip in chips:
        side = bill(workload, chip, replace(how, draws=2001)).inference
        if side.estimate is not None and side.estimate.joules is not None:
            joules = side.estimate.joules
            numbers = (joules.value, joules.low, joules.high)
            fits = side.placement.verdict is Verdict.FITS
            yield chip.name, Point(code, found.steps, found.accuracy, *numbers, fits=fits)


def beside(outcome: Json, other: Path) -> Json:
    """Two runs: what was counted, and on each chip the joules of both, inference and learning."""
    from neuro_eqprop.io.toml import read_json

    path = other / "energy.json"
    if not path.is_file():
        raise ValueError(f"{path} is missing; `neuro-eqprop energy {other}` makes it")
    theirs = dict(read_json(path).content)
    try:
        found = {each["profile"]: each for each in theirs["profiles"]}
        rows = [
            {"profile": each["profile"], **held(each[use], found[each["profile"]][use]), "use": use}
            for use in ("inference", "learning")
            for each in outcome["profiles"]
            if each["profile"] in found
        ]
        return {"run": str(other), "counted": in_short(theirs), "profiles": rows}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no file of this command: {error!r} is not there") from error


def held(mine: Json, its: Json) -> Json:
    """Two sides of a bill; not compared where they enclose different things."""
    same = mine["boundary"] == its["boundary"] and mine["joules"] and its["joules"]
    return {
        "joules": mine["joules"],
        "other": its["joules"],
        "times": mine["joules"] / its["joules"] if same else None,
        "boundaries": [mine["boundary"], its["boundary"]],
        "reasons": [mine["reason"], its["reason"]],
    }


def in_short(outcome: Json) -> Json:
    """What was counted of a run, for a line beside another."""
    names = ("code", "steps", "activity", "spikes_per_sample", "synops_per_sample")
    counted = outcome["counted"]
    return {"input_coding": outcome["input_coding"], **{name: counted[name] for name in names}}
