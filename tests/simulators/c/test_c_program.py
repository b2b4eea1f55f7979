"""C programs: every message and drive equals the reference, in clean C99 without undefined acts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.model import Model
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.files.write import MANIFEST, WriteError
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures.looped import looped
from neuro_eqprop.networks.architectures.mlp import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.runs.export_c import CLearning, Exported, program_of
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.c.build import compile_c, run_c, run_steps
from neuro_eqprop.simulators.c.program import (
    INPUT_ONE,
    Entry,
    Program,
    identifiers,
    make_program,
    safe_text,
)
from neuro_eqprop.simulators.c.source import header, source, weights_header
from neuro_eqprop.simulators.registry import load_backend, load_learner
from neuro_eqprop.simulators.testing.case import Case, run_case
from neuro_eqprop.simulators.testing.random_networks import attempt_case
from neuro_eqprop.spiking.arithmetic import FRACTION, nearest
from neuro_eqprop.spiking.ir import FixedPoint, Projection
from neuro_eqprop.spiking.make_plastic import training_stimulus
from neuro_eqprop.spiking.plasticity import TrainingSamples
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.spiking.synapses import SparseSynapses
from sims.cortex_m.run import missing, run, seconds

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="gcc is not installed")

ARM_PACKAGES = "gcc-arm-none-eabi qemu-system-arm"
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def write(program: Program, folder: Path) -> None:
    (folder / "net.h").write_text(header(program))
    (folder / "net.c").write_text(source(program))
    (folder / "weights.h").write_text(weights_header(program))


def drawn_case(number: int, *, steps: int = 10) -> Case:
    """A random network of 8-bit weights, with delays, loops and every kind of synapses."""
    case = attempt_case(8, number, attempt=0)
    network, _ = quantise(case.network, Rounding(8))
    return replace(case, network=network, schedule=three_phase(beta=0.3, free=steps, nudged=steps))


def given(case: Case) -> list[bytes]:
    """The samples of a case: bias and current, and pulls, in units."""
    network, stimulus = case.network, case.stimulus
    assert network.fixed is not None
    units = network.fixed.units
    samples = []
    for k in range(stimulus.samples):
        parts: list[Ints] = []
        for population in network.populations:
            unit = units[population.name]
            if population.name in stimulus.current:
                bias = np.rint(population.bias / unit)
                parts.append(bias + nearest(stimulus.current[population.name][k], unit))
        parts += [
            nearest(stimulus.pull[p.name][k], units[p.name])
            for p in network.populations
            if p.name in stimulus.pull
        ]
        samples.append(b"".join(part.astype(np.int32).tobytes() for part in parts))
    return samples


def case_program(case: Case) -> Program:
    driven = dict.fromkeys(case.stimulus.current, 2.0**-12)
    entry = Entry(64, driven=driven, pulled=frozenset(case.stimulus.pull))
    return make_program(case.network, entry, case.schedule, title="random")


def compare(case: Case, folder: Path, *options: str) -> int:
    """Compare all messages and drives with the reference; the number of messages."""
    program, want = case_program(case), run_case(load_backend("reference"), case)
    write(program, folder)
    samples = [bytes(2 * program.features) + rest for rest in given(case)]
    found = run_steps(folder, program, case.schedule, samples, options)
    assert case.network.fixed is not None
    sent = 0
    for population in case.network.populations:
        name, neuron = population.name, population.neuron
        unit = case.network.fixed.units[name]
        payload = neuron.sizes.payload if neuron.graded else 1.0
        shown = unit if neuron.graded else unit / FRACTION
        for k, recording in enumerate(want.recordings):
            np.testing.assert_array_equal(found.messages[name][k] * payload, recording.spikes[name])
            drive = recording.signals[name, "drive"]
            np.testing.assert_array_equal(found.drives[name][k] * shown, drive)
        sent += int(np.abs(found.messages[name]).sum())
    return sent


@pytest.mark.parametrize("number", range(6))
def test_every_message_and_drive_of_random_networks_is_equal(number: int, tmp_path: Path) -> None:
    assert compare(drawn_case(number), tmp_path, "-O2")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("number", range(100, 140))
def test_many_random_networks(number: int, tmp_path: Path) -> None:
    assert compare(drawn_case(number), tmp_path, *SANITIZED)


LEARN = """
#include <stdio.h>
#include "net.h"
int main(int count, char **names)
{
    static int16_t x[NET_INPUTS];
    FILE *in = fopen(names[count - 1], "rb");
    uint16_t label;
    while (in != NULL && fread(x, 1, sizeof x, in) == sizeof x
           && fread(&label, 1, sizeof label, in) == sizeof label) {
        net_learn(x, label);
    }
%s    return 0;
}
"""
PRINTED = """    for (unsigned k = 0; k < sizeof {0}; k++) {{
        printf("%d ", {0}[k]);
    }}
"""


def learned_weights(made: Exported, folder: Path, x: Array, y: Ints, *options: str) -> Ints:
    """All weights after learning from samples, in the order of the tables."""
    write(made.program, folder)
    names = [table.name for table in made.program.tables if table.learns]
    (folder / "learn.c").write_text(LEARN % "".join(PRINTED.format(name) for name in names))
    rows = zip(made.integers(x), y.astype(np.uint16), strict=True)
    (folder / "samples").write_bytes(b"".join(a.tobytes() + b.tobytes() for a, b in rows))
    program = compile_c(folder, ["net.c", "learn.c"], options)
    return np.array(run_c(program, str(folder / "samples")).split(), dtype=np.int64)


def reference_weights(made: Exported, x: Array, y: Ints, on: str = "reference") -> Ints:
    """The same by a simulator."""
    plastic = made.program.plastic
    assert plastic is not None
    rate, coding = made.spiking.rate, made.spiking.coding
    values = made.integers(x) / INPUT_ONE
    stimulus = training_stimulus(rate, values, one_hot(y, rate.output.size), coding)
    rates = np.full(len(x), made.program.rate)
    learned = load_learner(on).learn(plastic, TrainingSamples(stimulus, rates))
    parts = [learned.weights[part.name].T / part.scale for part in plastic.plastic]
    return np.concatenate([part.ravel() for part in parts]).astype(np.int64)


@pytest.mark.parametrize(
    ("model", "code", "batch"),
    [
        ("layered", "graded", 1),
        ("layered", "rate", 1),
        ("deep", "graded", 4),
        ("deep", "rate", 4),
        ("looped", "graded", 1),
        ("looped", "rate", 1),
    ],
)
def test_every_weight_after_learning_is_equal(
    model: str, code: str, batch: int, tmp_path: Path
) -> None:
    data = ne.load_data("digits")
    clip = HARD_SIGMOID
    network = {
        "layered": layered(64, (24,), 10, hidden_rate=clip, output_rate=clip),
        "deep": layered(64, (16, 12), 10, hidden_rate=clip, output_rate=clip),
        "looped": looped(64, 16, 10, hidden_rate=clip, output_rate=clip, bound=None),
    }[model]
    trained = Model(network, initialize(network, np.random.default_rng(0)))
    spiking = trained.to_spiking(code=code, bits=8)
    made = program_of(spiking, learning=CLearning(beta=0.3, rate=0.2, batch=batch, seed=3))
    x, y = data.train.x[:40], data.train.y[:40]
    start = learned_weights(made, tmp_path, x[:0], y[:0])
    want = reference_weights(made, x, y)
    for options in (SANITIZED, ("-O2",), ("-O3",)):
        found = learned_weights(made, tmp_path, x, y, *options)
        np.testing.assert_array_equal(found, want)
    assert np.count_nonzero(found != start) > 20


@pytest.fixture(scope="module")
def digits() -> Model:
    return ne.train("layered", "digits", hidden=(128,), epochs=3)


@pytest.mark.parametrize("code", ["graded", "rate"])
def test_all_digits_send_every_message_in_20_kb(digits: Model, code: str, tmp_path: Path) -> None:
    test = ne.load_data("digits").test
    made = digits.to_spiking(code=code, bits=8).to_c(tmp_path / "net", test.x)
    assert (made.equal, made.samples, made.warning) == (1.0, 360, None)
    assert made.agreement is not None
    assert made.agreement > 0.98
    assert made.flash is not None
    assert made.flash <= 20_000
    assert made.ram <= 4_000
    files = {path.name for path in (tmp_path / "net").iterdir()}
    assert files == {MANIFEST, "net.h", "net.c", "weights.h", "example.c", "README.md"}
    run = compile_c(tmp_path / "net", ["net.c", "example.c"], SANITIZED)
    shown = digits.to_spiking(code=code, bits=8).run(test.x[:4]).predictions
    assert [int(word) for word in run_c(run).split()] == shown.tolist()
    source = (tmp_path / "net" / "net.c").read_text()
    assert re.findall(r"#include (\S+)", source) == ['"net.h"', '"weights.h"']
    assert not re.search(r"\b(float|double|malloc|while)\b", source)


@pytest.mark.parametrize("code", ["graded", "rate"])
def test_200_samples_learned_on_the_device_give_equal_weights(code: str, tmp_path: Path) -> None:
    train = ne.load_data("digits").train
    # Networks that learn on a chip have equal weights in both directions.
    trained = ne.train("layered", "digits", hidden=(128,), epochs=1, preset="chip")
    spiking = trained.to_spiking(code=code, bits=8)
    made = program_of(spiking, learning=CLearning(beta=0.2, rate=0.1))
    x, y = train.x[:200], train.y[:200]
    found = learned_weights(made, tmp_path, x, y, "-O2")
    np.testing.assert_array_equal(found, reference_weights(made, x, y, on="emulator"))


@pytest.mark.parametrize(
    ("name", "code", "coding", "settings"),
    [
        ("conv", "graded", "current", {}),
        ("conv", "graded", "graded", {}),
        ("looped", "graded", "graded", {}),
        ("looped", "paired", "rate", {}),
        ("sparse", "paired", "current", {}),
        ("toroidal", "graded", "current", {}),
        ("layered", "rate", "rate", {"hidden": (20, 20)}),
    ],
)
def test_models_send_every_message(
    name: str, code: str, coding: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    data = ne.load_data("digits")
    model = ne.train(name, data, epochs=1, **settings)
    spiking = model.to_spiking(code=code, bits=8, input=coding)
    made = spiking.to_c(tmp_path / "net", data.test.x[:10])
    assert made.equal == 1.0
    assert made.operations.synapses > 0


def test_a_program_takes_no_longer_than_the_emulator(digits: Model, tmp_path: Path) -> None:
    x = ne.load_data("digits").test.x
    spiking = digits.to_spiking(code="graded", bits=8)
    spiking.to_c(tmp_path / "net")
    ours, emulator = seconds(tmp_path / "net", x[:100], spiking)
    assert ours <= emulator


def test_translate_writes_a_folder(
    trained_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net"
    words = f"translate {trained_run} --to c --out {out} --samples 5 --json".split()
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["to"], found["equal"], found["samples"], found["bits"]) == ("c", 1.0, 5, 8)
    assert found["flash"] > found["constants"] > 64 * 24
    assert (out / "README.md").read_text().count("|") > 20
    assert main(words) == 1  # the folder exists


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "name", ["*/ #include <x>", "int", "a\\\nb", "??/", "/* x", "hidden", "Ümläut", "", '%s"', "9"]
)
def test_names_are_safe_in_source(name: str, tmp_path: Path) -> None:
    case = drawn_case(0, steps=2)
    first = case.network.populations[0].name
    renamed = {first: name}

    def new(old: str) -> str:
        return renamed.get(old, old)

    network = replace(
        case.network,
        populations=tuple(replace(p, name=new(p.name)) for p in case.network.populations),
        projections=tuple(
            Projection(new(p.source), new(p.target), p.synapses, p.delay, p.gain)
            for p in case.network.projections
        ),
        output=new(case.network.output),
        fixed=FixedPoint(
            {new(n): u for n, u in (case.network.fixed or FixedPoint({})).units.items()}
        ),
    )
    program = make_program(network, Entry(4), case.schedule, title=name)
    write(program, tmp_path)
    compile_c(tmp_path, ["net.c"], ("-c", "-Wno-unused-function"))
    for file in ("net.h", "net.c", "weights.h"):
        text = (tmp_path / file).read_text()
        assert text.isascii()
        assert "#include <x>" not in text
        assert "??" not in text


def test_identifiers_are_unique_and_text_is_harmless() -> None:
    names = identifiers(["a b", "a_b", "A_B", "a-b", "x" * 50, "x" * 51, "a", "a_t"])
    assert len(set(names.values())) == 8
    assert all(re.fullmatch(r"[a-z0-9_]+", each) for each in names.values())
    assert not any(each.endswith("_t") for each in names.values())
    assert all(len(f"net_message_{each}") <= 31 for each in names.values())
    assert safe_text('a*/"\\\n??/') == "a_______/".replace("/", "_")


def test_what_integers_cannot_do_is_refused(tmp_path: Path) -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1)
    with pytest.raises(BackendError, match="bits=8"):
        model.to_spiking(code="graded").to_c(tmp_path / "net")
    with pytest.raises(BackendError, match="bits=8"):
        model.to_spiking(code="graded").to_c(tmp_path / "net", learning=True)
    with pytest.raises(ValueError, match="option of learning=True"):
        model.to_spiking(bits=8).to_c(tmp_path / "net", beta=0.1)
    with pytest.raises(WriteError, match="exists already"):
        model.to_spiking(bits=8).to_c(tmp_path)
    (tmp_path / "mine").touch()
    with pytest.raises(WriteError, match="did not write"):
        model.to_spiking(bits=8).to_c(tmp_path, force=True)


def test_the_linker_takes_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libgcc_s.so.1").write_text("a script of somebody else")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    monkeypatch.chdir(tmp_path)
    made = compile_c(Path(), ["main.c"])
    assert run_c(made) == ""


def test_tags_that_do_not_fit_32_bits_are_refused() -> None:
    network = layered(64, (8,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    model = Model(network, initialize(network, np.random.default_rng(0)))
    with pytest.raises(BackendError, match="batch of 100000 samples need more than 32 bits"):
        program_of(model.to_spiking(bits=8), learning=CLearning(beta=0.3, batch=100_000))


def test_a_sparse_matrix_without_weights_compiles(tmp_path: Path) -> None:
    case = drawn_case(0, steps=2)
    first = case.network.projections[0]
    shape = first.synapses.shape
    ends, columns = np.zeros(shape[0] + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    none = SparseSynapses(shape, ends, columns, np.zeros(0))
    empty = Projection(first.source, first.target, none, first.delay, first.gain)
    network = replace(case.network, projections=(empty, *case.network.projections[1:]))
    compare(replace(case, network=network), tmp_path, *SANITIZED)


@pytest.mark.arm
@pytest.mark.parametrize("code", ["graded", "rate"])
def test_a_cortex_m_gives_the_same_classes(digits: Model, code: str, tmp_path: Path) -> None:
    lacking = missing()
    if lacking:
        pytest.skip(f"{', '.join(lacking)} is not installed; apt-get install {ARM_PACKAGES}")
    x = ne.load_data("digits").test.x[:10]
    spiking = digits.to_spiking(code=code, bits=8)
    spiking.to_c(tmp_path / "net")
    ran = run(tmp_path / "net", x)
    assert ran.classes == spiking.run(x).predictions.tolist()
    assert ran.flash <= 20_000
    assert ran.ram <= 4_000
    assert ran.instructions > 10_000
