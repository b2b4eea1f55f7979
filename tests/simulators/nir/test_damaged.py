"""Files of others are tried in a child first; files of ours from before are read as they were."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from neuro_eqprop.files.probe import LostError, Prober
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import NirError
from neuro_eqprop.simulators.nir.read import read
from neuro_eqprop.simulators.nir.write import write

nir: Any = import_module("nir")
GOLDEN = Path(__file__).parent / "golden"
DIGESTS = {
    "mixed.nir": "d9068adb661b8ede0f25a5c4800d8e819e4a1d60fc106b51cea47031c2dffad3",
    "rate.nir": "803bde5f32eb635f43c1522fd4c3a50d14691abc4ea7f01d5f07b463aad18318",
}
"""Of networks in files that an earlier version wrote; a change here is a change of the format."""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    cell = nir.IF(r=np.ones(2), v_threshold=np.ones(2), v_reset=np.zeros(2))
    nodes = {"in": nir.Input(np.array([2])), "cell": cell, "out": nir.Output(np.array([2]))}
    path = tmp_path / "foreign.nir"
    nir.write(path, nir.NIRGraph(nodes, [("in", "cell"), ("cell", "out")]))
    return path


def test_a_whole_file_of_others_passes(foreign: Path) -> None:
    assert read(foreign, Assumptions(dt=1.0)).network.output == "cell"


@pytest.mark.parametrize("reason", ["reading it does not end", "reading it crashes"])
def test_a_file_that_its_reader_does_not_survive_is_refused(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def lost(*_: object) -> str:
        raise LostError(reason)

    monkeypatch.setattr(Prober, "call", lost)
    for path in (foreign, GOLDEN / "mixed.nir"):  # also a sealed one: anyone can seal a file
        with pytest.raises(NirError, match=f"is damaged: {reason}"):
            read(path, Assumptions(dt=1.0))


def test_only_the_child_opens_the_file_itself(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = list[str](), h5py.File

    def noted(name: object, *more: object) -> object:
        opened.append(str(name))
        return real(name, *more)

    monkeypatch.setattr(h5py, "File", noted)
    read(foreign, Assumptions(dt=1.0))
    assert opened
    assert str(foreign) not in opened


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_damaged_file_of_others_is_refused_in_words(foreign: Path, part: float) -> None:
    content = foreign.read_bytes()
    foreign.write_bytes(content[: int(part * len(content))])
    with pytest.raises(NirError, match=r"cut short, damaged or no NIR file"):
        read(foreign, Assumptions(dt=1.0))


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_from_before_is_the_network_it_was(name: str, tmp_path: Path) -> None:
    document = read(GOLDEN / name)
    assert document.network.digest == DIGESTS[name]
    write(document, tmp_path / name)
    assert read(tmp_path / name).network.digest == DIGESTS[name]


def test_a_golden_file_with_a_changed_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mixed.nir"
    shutil.copy(GOLDEN / "mixed.nir", path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(NirError, match="its bytes are not those written"):
        read(path)
