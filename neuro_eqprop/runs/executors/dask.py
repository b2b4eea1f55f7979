"""Run tasks on a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from neuro_eqprop.runs.executors.local import run_in_new_worker
from neuro_eqprop.runs.executors.task import ExecutorError, Task, TaskResult

LOST_AFTER = 10.0
"""Seconds without a connection after which a scheduler counts as lost."""
CONNECT = 10.0
"""Timeout of the first connection in seconds."""


class OpenSchedulerWarning(UserWarning):
    """Warns of a scheduler on which anyone in the network can run code."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates of an encrypted connection, as PEM files; see "TLS" in the docs of Dask."""

    ca: Path
    certificate: Path
    key: Path

    def check(self) -> None:
        """Raise ExecutorError if a file is missing."""
        for path in (self.ca, self.certificate, self.key):
            if not path.is_file():
                raise ExecutorError(f"there is no file {path} for TLS; give a PEM file")


@dataclass(frozen=True, slots=True)
class Dask:
    """Runs tasks on the Dask cluster with this scheduler; needs the extra `cluster`.

    If a worker of the cluster dies, Dask runs its tasks on another one.

    Parameters
    ----------
    scheduler : str
        Its address, as "tcp://127.0.0.1:8786" or, with `tls`, "tls://host:8786".
    tls : Tls, optional
        Certificates for an encrypted and authenticated connection.
    """

    scheduler: str
    tls: Tls | None = None

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Yield the results in order of completion; raise ExecutorError if the cluster is lost."""
        client = self.connect()
        done: SimpleQueue[Any] = SimpleQueue()
        try:
            futures = {}
            for task in tasks:
                future = client.submit(run_in_new_worker, task, deadline, pure=False, retries=3)
                futures[future.key] = future, task
                future.add_done_callback(done.put)
            for _ in tasks:
                future = self.next_done(client, done)
                yield task_result(future, futures.pop(future.key)[1])
        finally:
            client.close(timeout=2)

    def connect(self) -> Any:  # noqa: ANN401
        """A client of the scheduler."""
        try:
            from distributed import Client, Security
        except ImportError as error:
            raise ExecutorError(
                "a Dask cluster needs the packages dask and distributed; install them with "
                "`pip install neuro_eqprop[cluster]`, or use executor 'local'"
            ) from error
        if self.tls is None:
            warn_if_open(self.scheduler)
        security = None
        if self.tls is not None:
            self.tls.check()
            security = Security(
                tls_ca_file=str(self.tls.ca),
                tls_client_cert=str(self.tls.certificate),
                tls_client_key=str(self.tls.key),
                require_encryption=True,
            )
        try:
            return Client(self.scheduler, security=security, timeout=CONNECT)
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorError(
                f"there is no Dask scheduler at {self.scheduler} ({reason(error)}); start one with "
                f"`dask scheduler`, or use executor 'local'"
            ) from error

    def next_done(self, client: Any, done: SimpleQueue[Any]) -> Any:  # noqa: ANN401
        """Wait for the next future to end; raise ExecutorError if the scheduler is lost."""
        connected = monotonic()
        while True:
            try:
                future = done.get(timeout=0.5)
            except Empty:
                future = None
            if future is not None and future.status in ("finished", "error"):
                return future
            if client.status == "running" and future is None:
                connected = monotonic()
            elif future is not None or monotonic() - connected > LOST_AFTER:
                raise ExecutorError(
                    f"the Dask scheduler at {self.scheduler} was lost; finished tasks are kept: "
                    f"start it again and repeat the call to run the rest"
                )


def task_result(future: Any, task: Task) -> TaskResult:  # noqa: ANN401
    """The result of a future that ended."""
    if future.status == "finished":
        found: TaskResult = future.result()
        return TaskResult(task, found.values, found.error, found.seconds)
    return TaskResult(task, {}, f"the cluster lost the task: {reason(future.exception())}")


def reason(error: BaseException) -> str:
    """The first line of the message of an error."""
    return (str(error) or type(error).__name__).splitlines()[0]


def warn_if_open(address: str) -> None:
    """Warn of a scheduler without TLS that other machines can reach."""
    host = urlsplit(address if "//" in address else f"tcp://{address}").hostname or ""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host in ("localhost", "")
    if not local:
        warnings.warn(
            f"the connection to {address} is neither encrypted nor authenticated: anyone in that "
            f"network can run code on the cluster; use TLS certificates",
            OpenSchedulerWarning,
            stacklevel=4,
        )
