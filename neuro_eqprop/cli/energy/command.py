"""`neuro-eqprop energy RUN`: joules per inference and per training sample on each chip."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from neuro_eqprop.cli.command import Command, Json, positive_float, positive_int
from neuro_eqprop.cli.energy.learning import taught_json, teach
from neuro_eqprop.cli.energy.options import beside, curve, curve_options, given, workload_of
from neuro_eqprop.cli.energy.tables import show
from neuro_eqprop.cli.evaluate import code_options, input_option

if TYPE_CHECKING:
    from neuro_eqprop.energy.estimate import ChipEstimate, Options
    from neuro_eqprop.hardware.profile import Profile
    from neuro_eqprop.hardware.workload import Workload


def options(parser: ArgumentParser) -> None:
    """The options of `energy`."""
    parser.add_argument("run", type=Path, nargs="?", metavar="RUN", help="the folder of a run")
    parser.add_argument("--counts", type=Path, metavar="FILE", help="counted events, as JSON")
    parser.add_argument(
        "--profile", action="append", metavar="NAME", help="a chip or a TOML file; repeatable"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="CHIP.SECTION.KEY=VALUE",
        help="a value of your own, as in loihi1.energy.synop=30pJ; repeatable",
    )
    parser.add_argument(
        "--samples", type=positive_int, default=32, help="samples and lessons to count on"
    )
    code_options(parser)
    parser.set_defaults(code=None)
    input_option(parser)
    told = "bits of a weight on the chip; counts are then in fixed point (8, counted exactly)"
    parser.add_argument("--bits", type=positive_int, help=told)
    parser.add_argument("--batch", type=positive_int, help="batch of the dense devices; all if not")
    parser.add_argument("--time", choices=("model", "tick"), help="time of a step: model or tick")
    parser.add_argument("--step-seconds", type=positive_float, help="time of a step, as measured")
    parser.add_argument(
        "--overhead",
        choices=("loaded_idle", "static_and_host"),
        help="which power of a chip at rest; loaded idle where known",
    )
    parser.add_argument("--tag-bits", type=positive_int, help="bits of a learning tag per synapse")
    parser.add_argument(
        "--soft-reset",
        choices=("auto", "on", "off"),
        default="auto",
        help="whether neurons take the compartments of a soft reset",
    )
    parser.add_argument("--chips", type=positive_int, help="how many chips there are")
    parser.add_argument(
        "--presentations", type=positive_int, help="samples times epochs of the whole training"
    )
    curve_options(parser)
    parser.add_argument("--beside", type=Path, metavar="RUN", help="a second run, side by side")
    parser.add_argument("--explain", action="store_true", help="the source of every term")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")


def run(args: Namespace) -> Json:
    """Count, place, price and compare."""
    from neuro_eqprop.cli.energy.json import bill_json
    from neuro_eqprop.energy.estimate import NO_LEARNING, bill
    from neuro_eqprop.io.energy_file import write_json

    chips, devices = chosen(args)
    defaults = ArgumentParser()
    options(defaults)
    words = given(args, defaults.parse_args([]))
    workload = counted_run(args)
    how = pricing(args)
    taught = teach(args, workload, steps=args.steps, code=args.code)
    bills = [
        bill(workload, profile, how, lessons=taught.load, unlearned=taught.reason or NO_LEARNING)
        for profile in chips
    ]
    refuse_alone(bills, args)
    outcome: Json = {
        "run": args.run and str(args.run),
        "input_coding": workload.input_coding,
        "counted": {**counted(args, workload), "lessons": taught_json(taught)},
        "seed": args.seed,
        "options": words,
        "profiles": [bill_json(each, presentations=taught.presentations) for each in bills],
        **against(workload, bills, devices, args=args, how=how),
    }
    if args.explain:
        outcome["sources"] = explain(bills)
    if args.curve:
        outcome |= curve(args, chips, how)
    if args.beside is not None:
        outcome["beside"] = beside(outcome, args.beside)
    if args.run is not None:
        write_json(args.run / "energy.json", outcome)
        outcome["file"] = str(args.run / "energy.json")
    return outcome


def chosen(args: Namespace) -> tuple[list[Profile], list[Profile]]:
    """The chips to price, and the dense devices to hold against them."""
    from neuro_eqprop.energy.estimate import check_factors
    from neuro_eqprop.hardware.profile import Device
    from neuro_eqprop.io.profile.load import load_profile, load_profiles, profile_names

    everything = {name: load_profile(name) for name in profile_names()}
    devices = [each for each in everything.values() if each.device is not Device.SPIKING]
    ours = [e for e in everything.values() if e.device is Device.SPIKING and not e.scenario]
    if not args.profile and not args.override:
        return ours, devices
    chips = load_profiles(
        dict.fromkeys(args.profile or [each.name for each in ours]), args.override
    )
    for chip in chips:
        check_factors(chip)
        if chip.device is not Device.SPIKING:
            raise ValueError(
                f"profile {chip.name!r} is no spiking chip; dense devices are always compared with"
            )
    return chips, devices


def pricing(args: Namespace) -> Options:
    """How to price, from the command line."""
    from neuro_eqprop.energy.estimate import Options
    from neuro_eqprop.energy.event_counts import Clock
    from neuro_eqprop.hardware.profile import Overhead

    return Options(
        seed=args.seed,
        clock=Clock(args.time) if args.time else None,
        step_seconds=args.step_seconds,
        overhead=Overhead(args.overhead) if args.overhead else None,
        tag_bits=args.tag_bits,
        soft_reset={"auto": None, "on": True, "off": False}[args.soft_reset],
        chips=args.chips,
    )


def counted_run(args: Namespace) -> Workload:
    """What a run did, in the code asked for; if none was, in `rate`, or in `graded` if it must."""
    from neuro_eqprop.spiking.codes import LoweringError

    asked, args.code = args.code, args.code or "rate"
    try:
        return events(args, steps=args.steps, code=args.code)
    except LoweringError:
        if asked is not None:
            raise
        args.code = "graded"
        return events(args, steps=args.steps, code=args.code)


def events(args: Namespace, *, steps: int | None, code: str) -> Workload:
    """What a run did: read from a file of counts, or counted now."""
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.io.workload_file import read_workload

    if args.counts is not None:
        given = read_workload(args.counts)
        return given if args.bits is None else given.with_bits(args.bits)
    if args.run is None:
        raise ValueError("energy needs a RUN to count events of, or --counts FILE")
    from neuro_eqprop.experiments.evaluate import count_events
    from neuro_eqprop.experiments.run_folder import open_run

    opened = open_run(args.run)
    with bar("counting events", args.samples) as advance:
        found = count_events(
            opened.model,
            opened.test_samples(min(args.samples, len(opened.data.test))),
            steps=steps,
            code=code,
            progress=lambda more: advance(more, "samples"),
            bits=args.bits,
            input=args.input,
        )
    return workload_of(found, bits=args.bits)


def counted(args: Namespace, workload: Workload) -> Json:
    """Where the counts come from, in the open."""
    from neuro_eqprop.energy.dense_reference import host_macs

    by_phase = workload.phases(learning=False).values()
    return {
        "from": str(args.counts) if args.counts else "a run on the emulator made for this",
        "samples": workload.samples,
        "steps": workload.steps,
        "code": None if args.counts else args.code,
        "bits": args.bits,
        "activity": workload.activity,
        "spikes_per_sample": sum(c.spikes for c in by_phase) / workload.samples,
        "synops_per_sample": sum(c.synops for c in by_phase) / workload.samples,
        "host_macs_per_sample": host_macs(workload),
        "dense_macs": workload.dense_macs,
        "learning": workload.learned,
    }


def refuse_alone(bills: list[ChipEstimate], args: Namespace) -> None:
    """A refusal is an error where the refused chip is all that was asked for."""
    if args.profile and len(bills) == 1 and bills[0].inference.reason.startswith("refused"):
        raise ValueError(bills[0].inference.reason.partition(": ")[2])


def against(
    workload: Workload,
    bills: Iterable[ChipEstimate],
    devices: list[Profile],
    *,
    args: Namespace,
    how: Options,
) -> Json:
    """The dense pass on measured devices, and whether spikes win."""
    from neuro_eqprop.cli.energy.json import comparison_json, reference_json
    from neuro_eqprop.energy.dense_reference import judge_all, ratio, references
    from neuro_eqprop.hardware.profile import Device

    macs = workload.dense_macs
    found = references(devices, macs=macs, batch=args.batch, seed=args.seed) if macs else []
    judged = [
        comparison_json(one)
        for each in bills
        if each.inference.estimate is not None and each.inference.estimate.joules is not None
        for one in judge_all(workload, each.profile, each.inference.estimate, found, how)
    ]
    quiet = workload.activity == 0
    ratios = {
        each.name: ratio(each, workload)
        for each in devices
        if each.device is Device.RATIO and macs and not quiet
    }
    return {
        "reference": [reference_json(each) for each in found],
        "comparison": judged,
        "arithmetic_ratio": ratios,
    }


def explain(bills: Iterable[ChipEstimate]) -> Json:
    """For each chip the entries that its estimate used, with their sources."""
    from neuro_eqprop.cli.energy.json import explain_json

    sources: Json = {}
    for each in bills:
        estimates = (each.inference.estimate, each.learning.estimate)
        used = {term.key for found in estimates if found is not None for term in found.terms}
        if "power.idle_loaded" in used:
            used.add("power.idle_boot")
        rows = explain_json(each.profile)
        sources[each.profile.name] = [
            row for row in rows if row["key"] in used or row["key"].startswith("time.")
        ]
    return sources


COMMAND = Command(
    "energy", "joules per inference and per training sample on each chip", options, run, show
)
