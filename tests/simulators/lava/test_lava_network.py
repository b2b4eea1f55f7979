"""`neuro_eqprop.lava.Network` makes a Lava process from a run folder alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from neuro_eqprop.lava import Network

pytestmark = pytest.mark.lava
CODE = """
import sys
from neuro_eqprop.lava import Network
net = Network.from_run(sys.argv[1], neurons="stock", bits=8, reset_interval=32)
assert net.inp.shape == (64,) and net.out.shape == (10,)
print(sorted({"torch", "sklearn"} & set(sys.modules)))
"""


def test_a_run_folder_becomes_a_process_without_torch_and_without_its_data(
    trained_run: Path,
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(trained_run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="finished run folder"):
        Network.from_run(tmp_path)


def test_a_run_configuration_for_a_chip_says_what_is_missing(trained_run: Path) -> None:
    from lava.magma.core.run_configs import Loihi2SimCfg

    exact, stock = (
        Network.from_run(trained_run, neurons=kind, reset_interval=8) for kind in ("exact", "stock")
    )
    for net in (exact, stock):
        assert isinstance(net.run_config(), Loihi2SimCfg)
    with pytest.raises(RuntimeError, match="lava-loihi"):
        stock.run_config(hardware=True)
    with pytest.raises(RuntimeError, match="neurons='stock'"):
        exact.run_config(hardware=True)
