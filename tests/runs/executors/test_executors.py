from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.runs.executors import (
    Executor,
    ExecutorError,
    Processes,
    Serial,
    Task,
    TaskResult,
    make_executor,
)
from neuro_eqprop.runs.executors.dask import Dask, OpenSchedulerWarning, Tls, warn_if_open
from neuro_eqprop.runs.executors.slurm import Slurm
from neuro_eqprop.runs.executors.task import canonical

PROBE = "neuro_eqprop.runs.executors.probe:probe"


def probe(do: str = "work", seed: int = 0, **more: float) -> Task:
    return Task(PROBE, {"do": do, "seed": seed, **more})


def run(executor: Executor, tasks: list[Task], deadline: float = 60.0) -> dict[str, TaskResult]:
    return {each.task.key: each for each in executor.run(tasks, deadline=deadline)}


def total(result: TaskResult) -> bytes:
    return canonical({"total": result.values["total"], "error": result.error})


def test_a_task_outside_the_package_is_refused() -> None:
    done = run(Serial(), [Task("os:getcwd", {})])
    assert "'os:getcwd' is not a function of neuro_eqprop or sims" in str(
        next(iter(done.values())).error
    )


def test_processes_return_the_same_as_this_process() -> None:
    tasks = [probe(seed=seed) for seed in range(3)]
    here, two = run(Serial(), tasks), run(Processes(2), tasks)
    assert [total(here[task.key]) for task in tasks] == [total(two[task.key]) for task in tasks]


def test_failures_and_crashes_leave_the_other_tasks_alone() -> None:
    tasks = [probe("fail"), probe("exit"), probe()]
    found = run(Processes(1), tasks)
    assert found[tasks[0].key].error == "ValueError: the probe fails on purpose"
    assert "exit code 3" in str(found[tasks[1].key].error)
    assert found[tasks[2].key].error is None


def test_workers_end_when_their_results_are_not_read() -> None:
    running = Processes(1).run([probe(), probe("sleep", seconds=60.0)], deadline=60.0)
    assert next(running).error is None
    began = time.monotonic()
    with closing(running):  # type: ignore[type-var]
        pass
    assert time.monotonic() - began < 10


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "from neuro_eqprop.runs.executors import Processes, Task\n"
        f"task = Task({PROBE!r}, {{'do': 'work'}})\n"
        f"slow = Task({PROBE!r}, {{'do': 'sleep', 'seconds': 600}})\n"
        "for done in Processes(1).run([task, slow], deadline=900):\n"
        "    print(done.values['process'], flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert running(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not running(worker), 5.0)


def test_a_worker_runs_no_code_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "ctypes", "signal", "neuro_eqprop", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert next(iter(run(Processes(1), [probe()]).values())).error is None
    assert not (tmp_path / "ran").exists()


def test_names_of_executors() -> None:
    assert make_executor("local") == Serial()
    assert make_executor("local", workers=3) == Processes(3)
    assert make_executor("slurm", workers=3) == Slurm(Path("slurm-jobs"), 3)
    assert make_executor("slurm", workers=1000) == Slurm(Path("slurm-jobs"), 1000)
    assert make_executor(Serial()) == Serial()
    with pytest.raises(ValueError, match="`workers` must be between 1 and"):
        make_executor("local", workers=10**6)
    with pytest.raises(ValueError, match="`workers` must be at least 1, not 0"):
        make_executor("slurm", workers=0)
    with pytest.raises(UnknownNameError, match="unknown executor 'dusk'; known: dask"):
        make_executor("dusk")
    with pytest.raises(ValueError, match="needs the address of a scheduler"):
        make_executor("dask")
    with pytest.raises(ValueError, match="scheduler belongs to executor 'dask'"):
        make_executor("local", scheduler="tcp://127.0.0.1:1")


# A real cluster: scheduler and workers are processes of their own, on the loopback interface.


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    pytest.importorskip("distributed")
    found = folder / "scheduler.json"
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter")
    with process(
        "distributed.cli.dask_scheduler", *options, "--scheduler-file", str(found)
    ) as child:
        assert wait_until(lambda: found.exists() and found.read_text().strip().endswith("}"), 60.0)
        yield json.loads(found.read_text())["address"], child


def worker(address: str) -> tuple[str, ...]:
    own = ("--nworkers", "1", "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard")
    return ("distributed.cli.dask_worker", address, *own, "--no-nanny")


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_costs_only_time(tmp_path: Path) -> None:
    tasks = [probe("sleep", seed, seconds=1.0) for seed in range(6)] + [probe("fail")]
    here = run(Serial(), [probe(seed=seed) for seed in range(6)])
    with (
        scheduler(tmp_path) as (address, _),
        process(*worker(address)) as first,
        process(*worker(address)),
    ):
        running_tasks = Dask(address).run(tasks, deadline=60.0)
        found = [next(running_tasks)]
        os.killpg(first.pid, signal.SIGKILL)
        found += list(running_tasks)
    by_seed = {each.task.arguments["seed"]: each for each in found if each.error is None}
    assert len(found) == len(tasks)
    assert sorted(by_seed) == list(range(6))
    assert [total(by_seed[seed]) for seed in range(6)] == [total(each) for each in here.values()]
    assert [each.error for each in found if each.error] == [
        "ValueError: the probe fails on purpose"
    ]


@pytest.mark.slow
def test_a_dask_cluster_shares_the_samples_of_a_simulation(tmp_path: Path) -> None:
    spiking = ne.train("layered", "digits", hidden=(8,), epochs=1).to_spiking(code="graded")
    x = ne.load_data("digits").test.x[:4]
    alone = spiking.run(x, on="reference", steps=8)
    with scheduler(tmp_path) as (address, _), process(*worker(address)):
        found = spiking.run(x, on="reference", steps=8, workers=2, executor=Dask(address))
    assert found.drive.tobytes() == alone.drive.tobytes()
    assert found.counts == alone.counts


def test_a_lost_dask_scheduler_is_an_error_that_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuro_eqprop.runs.executors.dask.LOST_AFTER", 2.0)
    with scheduler(tmp_path) as (address, child), process(*worker(address)):
        running_tasks = Dask(address).run([probe(), probe("sleep", seconds=60.0)], deadline=90.0)
        assert next(running_tasks).error is None
        child.kill()
        with pytest.raises(ExecutorError, match="was lost; finished tasks are kept"):
            next(running_tasks)


def test_no_dask_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("neuro_eqprop.runs.executors.dask.CONNECT", 1.0)
    with pytest.raises(ExecutorError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        list(Dask("tcp://127.0.0.1:9").run([probe()], deadline=1.0))


def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    tls = Tls(tmp_path / "ca.pem", tmp_path / "me.pem", tmp_path / "me.key")
    with pytest.raises(ExecutorError, match=r"there is no file .*ca\.pem for TLS"):
        list(Dask("tls://127.0.0.1:9", tls).run([probe()], deadline=1.0))


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "cluster.example:8786"])
def test_an_open_scheduler_is_warned_of(address: str) -> None:
    with pytest.warns(OpenSchedulerWarning, match="neither encrypted nor authenticated"):
        warn_if_open(address)


def test_a_loopback_scheduler_is_not_warned_of() -> None:
    for address in ("tcp://127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786"):
        warn_if_open(address)


@pytest.mark.slow
def test_dask_over_tls(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    pem = ("--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key))
    found = tmp_path / "scheduler.json"
    options = ("--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter", *pem)
    with process("distributed.cli.dask_scheduler", *options, "--scheduler-file", str(found)):
        assert wait_until(found.exists, 60.0)
        address = json.loads(found.read_text())["address"]
        assert address.startswith("tls://")
        with process(*worker(address), *pem):
            tls = Tls(certificate, certificate, key)
            done = list(Dask(address, tls).run([probe()], deadline=60.0))
    assert [each.error for each in done] == [None]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_submitit_jobs_return_the_same(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    tasks = [probe(seed=1), probe("fail")]
    here = run(Serial(), tasks)
    found = run(Slurm(tmp_path / "jobs", 2, cluster="local"), tasks)
    assert total(found[tasks[0].key]) == total(here[tasks[0].key])
    assert found[tasks[1].key].error == here[tasks[1].key].error


def test_a_machine_without_slurm_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExecutorError, match="Slurm did not accept the jobs"):
        list(Slurm(tmp_path / "jobs", 1).run([probe()], deadline=1.0))
