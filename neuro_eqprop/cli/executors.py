"""Options of executors, for commands that distribute their work."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from neuro_eqprop.cli.command import Json, UsageError, positive_int, set_completions
from neuro_eqprop.runs.executors import EXECUTORS, make_executor
from neuro_eqprop.runs.executors.dask import Tls
from neuro_eqprop.runs.workers import Shared

TLS = {
    "tls_ca": "certificate of the authority",
    "tls_cert": "your certificate",
    "tls_key": "its private key",
}
"""Options of TLS and their meaning."""


def executor_options(parser: ArgumentParser) -> None:
    """Add the executor, the address and certificates of Dask, and the options of Slurm."""
    add = parser.add_argument
    known = "; ".join(f"{name}: {text}" for name, text in EXECUTORS.items())
    set_completions(add("--executor", default="local", metavar="NAME", help=known), EXECUTORS)
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="with dask: its address, as tcp://127.0.0.1:8786 (no default)",
    )
    for name, meaning in TLS.items():
        add(
            f"--{name.replace('_', '-')}",
            type=Path,
            metavar="FILE.pem",
            help=f"with dask: {meaning} (default: no TLS)",
        )
    add(
        "--slurm",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of sbatch, such as partition=short; repeatable",
    )


def executor_arguments(args: Namespace) -> Json:
    """Return the arguments of `sweep`: executor, workers, scheduler, tls, slurm."""
    given = [getattr(args, name) for name in TLS]
    if any(given) and not all(given):
        raise UsageError("TLS needs --tls-ca, --tls-cert and --tls-key")
    pairs = [each.partition("=") for each in args.slurm]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--slurm takes OPTION=VALUE, such as partition=short")
    return {
        "executor": args.executor,
        "workers": args.workers,
        "scheduler": args.scheduler,
        "tls": Tls(*given) if all(given) else None,
        "slurm": {name: value for name, _, value in pairs},
    }


THREADS = "threads of the emulator, or processes of another simulator, that share the samples"


def shard_options(parser: ArgumentParser, workers: str = THREADS) -> None:
    """Add the workers and the executor that the samples are distributed over."""
    parser.add_argument(
        "--workers",
        type=positive_int,
        default=1,
        metavar="N",
        help=f"{workers}; with a cluster, parts of the samples (default 1)",
    )
    executor_options(parser)


def worker_options(args: Namespace) -> Shared:
    """Return the workers and the executor that the samples are distributed over."""
    given = executor_arguments(args)
    name, options = given.pop("executor"), given.pop("slurm")
    try:
        made = make_executor(name, options=options, **given)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Shared(args.workers, None if name == "local" else made)
