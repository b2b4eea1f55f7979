"""Start-up time: heavy modules are imported only where they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuro_eqprop.api.train import run_training
from neuro_eqprop.training.study import make_study


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("startup") / "run"
    study = make_study(hidden=(8,), epochs=1, batch=256)
    run_training(study, out, force=False, resume=False, on_epoch=lambda _: None)
    return out


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_evaluate_of_a_few_digits_does_not_import_torch_dynamo(run: Path) -> None:
    words = ["evaluate", str(run), "--samples", "5", "--json"]
    code = (
        f"import sys; from neuro_eqprop.cli import main; code = main({words!r})\n"
        "print(code, 'torch' in sys.modules, 'torch._dynamo' in sys.modules)"
    )
    assert run_python(code).splitlines()[-1] == "0 True False"


def test_evaluate_of_a_few_digits_on_the_emulator_imports_neither_torch_nor_scikit_learn(
    run: Path,
) -> None:
    words = ["evaluate", str(run), "--on", "emulator", "--samples", "5", "--json"]
    code = (
        f"import sys; from neuro_eqprop.cli import main; code = main({words!r})\n"
        "print(code, *[n for n in ('torch', 'sklearn', 'pandas') if n in sys.modules])"
    )
    assert run_python(code).splitlines()[-1] == "0"


def test_building_a_study_does_not_import_torch_dynamo() -> None:
    code = (
        "import sys; from neuro_eqprop.training.study import make_study\n"
        "make_study(optimizer='sgd(momentum=0.5)', lr_schedule='StepLR(step_size=2)')\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert run_python(code) == "False"


def test_importing_the_package_takes_less_than_a_tenth_of_a_second() -> None:
    code = (
        "import sys, time; began = time.process_time(); import neuro_eqprop\n"
        "print(time.process_time() - began)\n"
        "print(*[n for n in ('numpy', 'torch', 'sklearn', 'brian2') if n in sys.modules])"
    )
    seconds, *imported = run_python(code).splitlines()
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert float(seconds) < 0.1 * min(busy, 3.0)
    assert imported in ([], [""])
