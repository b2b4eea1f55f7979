"""Lava on newer Pythons: the wheel made anew, the changed import, and programs that end."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from zipfile import ZipFile

import pytest

from neuro_eqprop.common import lava_import
from neuro_eqprop.runs.environment import lava_note
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava import BACKEND, install, setup
from neuro_eqprop.simulators.lava.package import readme

METADATA = """Metadata-Version: 2.1
Name: lava-nc
Version: 0.10.0
Requires-Python: >=3.10,<3.11
Requires-Dist: asteval (>=0.9.31,<0.10.0)
Requires-Dist: networkx (<=2.8.7)

Requires-Python: this line is part of the description
"""
VAR_MODEL = f"from dataclasses import dataclass\n\n\n{lava_import.SOURCE}\n    base: int = 0\n"


def published(folder: Path, source: str = VAR_MODEL) -> Path:
    wheel = folder / "lava_nc-0.10.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("lava/magma/compiler/var_model.py", source)
        file.writestr("lava/other.py", "value = 1\n")
        file.writestr("lava_nc-0.10.0.dist-info/METADATA", METADATA)
        file.writestr("lava_nc-0.10.0.dist-info/RECORD", "")
    return wheel


def test_the_adapted_wheel_changes_one_line_the_bounds_and_the_version(tmp_path: Path) -> None:
    made = install.adapt(published(tmp_path))
    assert made.name == "lava_nc-0.10.0+ne1-py3-none-any.whl"
    with ZipFile(made) as file:
        held = {name: file.read(name).decode() for name in file.namelist()}
    changed = held["lava/magma/compiler/var_model.py"]
    assert changed == VAR_MODEL.replace("@dataclass\n", "@dataclass(unsafe_hash=True)\n")
    assert held["lava/other.py"] == "value = 1\n"
    about = held["lava_nc-0.10.0+ne1.dist-info/METADATA"].splitlines()
    assert "Version: 0.10.0+ne1" in about
    assert "Requires-Dist: asteval (>=0.9.31)" in about
    assert "Requires-Dist: networkx" in about
    assert [line for line in about if line.startswith("Requires-Python")] == [
        "Requires-Python: this line is part of the description"
    ]
    rows = held["lava_nc-0.10.0+ne1.dist-info/RECORD"].splitlines()
    for row in rows[:-1]:
        name, digest, size = row.split(",")
        content = held[name].encode()
        found = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={found}", str(len(content)))
    assert rows[-1] == "lava_nc-0.10.0+ne1.dist-info/RECORD,,"


def test_another_lava_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(install.InstallError, match="does not hold the line to change"):
        install.adapt(published(tmp_path, "value = 2\n"))
    place = tmp_path / "fetched"
    place.mkdir()
    monkeypatch.setattr(install, "pip", lambda *_: published(place))
    with pytest.raises(install.InstallError, match="its SHA-256 differs"):
        install.download(place)


def test_the_loader_changes_the_line_and_leaves_other_modules_alone(tmp_path: Path) -> None:
    path = tmp_path / "var_model.py"
    path.write_text(VAR_MODEL)
    finder = lava_import.HashableEncoder()
    assert finder.find_spec("lava.magma.compiler", None) is None
    code = lava_import.HashableLoader(lava_import.MODULE, str(path)).get_code(lava_import.MODULE)
    held: dict[str, type] = {"__name__": "var_model"}  # type: ignore[dict-item]
    exec(code, held)
    assert hash(held["ByteEncoder"]()) == hash(held["ByteEncoder"]())
    plain = SourceFileLoader(lava_import.MODULE, str(path)).get_code(lava_import.MODULE)
    assert plain is not None
    exec(plain, held)
    with pytest.raises(TypeError, match="unhashable"):
        hash(held["ByteEncoder"]())


def test_the_package_registers_the_finder_of_newer_pythons_once() -> None:
    lava_import.make_importable()
    found = [each for each in sys.meta_path if isinstance(each, lava_import.HashableEncoder)]
    assert len(found) == (sys.version_info >= (3, 11))


def test_doctor_tells_which_lava_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BACKEND.python_variable, raising=False)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    assert lava_note(None) is None
    assert lava_note(install.ADAPTED) == "0.10.0+ne1, as `neuro-eqprop lava install` makes it"
    assert "as published: one line changes" in str(lava_note(install.PUBLISHED))
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    assert lava_note(install.PUBLISHED) == "0.10.0"
    monkeypatch.setenv(BACKEND.python_variable, "/other/python")
    side = "not here; backends run it in /other/python (NEURO_EQPROP_LAVA_PYTHON)"
    assert lava_note(None) == side


def test_the_readme_of_a_package_says_what_each_python_needs() -> None:
    text = readme("mynet", "stock", 1.0, 5, "")
    assert "`pip install lava-nc==0.10.0`" in text
    assert "On Python 3.11 to 3.13 pip refuses it, and\n`neuro-eqprop lava install`" in text


def test_a_lava_that_is_not_there_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda _: None)
    with pytest.raises(BackendError, match="`neuro-eqprop lava install` installs it"):
        setup.prepare_import()


SCRIPT = """
import os, signal, sys, time
from neuro_eqprop.simulators.lava.setup import prepare_import
prepare_import()
import numpy as np
from lava.magma.core.run_conditions import RunSteps
from lava.magma.core.run_configs import Loihi2SimCfg
from lava.proc.io.sink import RingBuffer as Sink
from lava.proc.io.source import RingBuffer as Source

source, sink = Source(data=np.ones((1, 4))), Sink(shape=(1,), buffer=4)
source.s_out.connect(sink.a_in)
sink.run(condition=RunSteps(4), run_cfg=Loihi2SimCfg(select_tag="floating_pt"))
print("ran", flush=True)
"""
ENDS = {
    "an error": ("raise ValueError('x')", 1),
    "sys.exit": ("sys.exit(3)", 3),
    "stop": ("sink.stop()", 0),
    "Ctrl-C": ("os.killpg(0, signal.SIGINT); time.sleep(60)", 130),
    "Ctrl-C in a run": (
        "import threading; threading.Timer(0.5, lambda: os.killpg(0, signal.SIGINT)).start()\n"
        "sink.run(condition=RunSteps(10**7), run_cfg=Loihi2SimCfg(select_tag='floating_pt'))",
        130,
    ),
    "Ctrl-C in a watched run": (
        "import threading; threading.Timer(0.5, lambda: os.killpg(0, signal.SIGINT)).start()\n"
        "from neuro_eqprop.lava import watch; watch(sink).run(RunSteps(10**7))",
        130,
    ),
    "a dead child of a watched run": (
        "from neuro_eqprop.lava import watch; import threading\n"
        "actors = sink.runtime._messaging_infrastructure.actors\n"
        "threading.Timer(0.5, lambda: os.kill(actors[0].pid, 9)).start()\n"
        "watch(sink).run(RunSteps(10**7))",
        1,
    ),
    "a dead child": (
        "os.kill(sink.runtime._messaging_infrastructure.actors[0].pid, 9); sys.exit(4)",
        4,
    ),
}
KILL = "os.kill(sink.runtime._messaging_infrastructure.actors[0].pid, 9); time.sleep(0.2)\n"
WATCHED = SCRIPT.replace("from neuro_eqprop.simulators.lava.setup import prepare_import\n", "")
WATCHED = WATCHED.replace("prepare_import()\n", "from neuro_eqprop.lava import watch\n")
WATCHED = WATCHED.replace("sink.run(", "watch(sink).run(")
WATCHED_ENDS = {
    "an error": ("raise ValueError('x')", 1),
    "stop": ("sink.stop()", 0),
    "a dead child before stop": (KILL + "sink.stop()", 1),
    "a dead child before a variable is read": (KILL + "sink.data.get()", 1),
}
SCRIPTS = {how: (SCRIPT + end, code) for how, (end, code) in ENDS.items()}
SCRIPTS |= {f"watched: {how}": (WATCHED + end, code) for how, (end, code) in WATCHED_ENDS.items()}


@pytest.mark.lava
@pytest.mark.parametrize("how", SCRIPTS)
def test_a_program_with_a_running_network_ends(how: str, tmp_path: Path) -> None:
    source, code = SCRIPTS[how]
    script = tmp_path / "script.py"
    script.write_text(source)
    shared = set(Path("/dev/shm").iterdir())
    # Eight seconds; longer where other programs share the processors.
    limit = 8 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as program:
        assert program.stdout is not None
        started = program.stdout.readline()
        began = time.monotonic()
        try:
            program.wait(60)
        finally:
            # The resource tracker of multiprocessing ends when it sees that its parent is gone.
            while alive(program.pid) and time.monotonic() - began < limit:
                time.sleep(0.05)
            seconds = time.monotonic() - began
            left = alive(program.pid)
            if left:
                os.killpg(program.pid, signal.SIGKILL)
    assert started == "ran\n"
    # A Python that a KeyboardInterrupt ends kills itself by the signal, which shells show as 130.
    assert program.returncode == (-signal.SIGINT if code == 130 else code)
    assert not left
    assert seconds < limit
    assert not [place for place in set(Path("/dev/shm").iterdir()) - shared if unmapped(place)]


def unmapped(segment: Path) -> bool:
    """Whether a segment of shared memory is left and no process, of another test, maps it."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            if str(segment) in maps.read_text():
                return False
    return segment.exists()


def alive(group: int) -> bool:
    """Whether a process of the group is alive."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
