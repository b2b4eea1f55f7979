from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as to_bytes

from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.checkpoint import (
    SCHEMA,
    CheckpointError,
    describe,
    load,
    load_training,
    save,
)
from neuro_eqprop.training.trained import TrainedNetwork

NETWORK = looped(4, 5, 3, hidden_rate=HARD_SIGMOID, output_rate=LINEAR, bound=0.9)


def made(network: Network = NETWORK, seed: int = 0) -> TrainedNetwork:
    drawn = initialize(network, np.random.default_rng(seed))
    params: dict[str, Any] = {name: value.astype(np.float32) for name, value in drawn.items()}
    return TrainedNetwork(network, params, 7)


def memory_of(model: TrainedNetwork) -> dict[str, Any]:
    memory: dict[str, Any] = {f"{name}/exp_avg": value + 1 for name, value in model.params.items()}
    return memory | {f"{name}/step": np.array(7.0, dtype=np.float32) for name in model.params}


def keep(path: Path, model: TrainedNetwork) -> None:
    save(path, model, memory_of(model))


def same(
    one: tuple[TrainedNetwork, dict[str, Any]], two: tuple[TrainedNetwork, dict[str, Any]]
) -> None:
    assert (one[0].network, one[0].epochs) == (two[0].network, two[0].epochs)
    for a, b in ((one[0].params, two[0].params), (one[1], two[1])):
        assert set(a) == set(b)
        for name in a:
            assert a[name].dtype == b[name].dtype
            assert np.array_equal(np.ravel(a[name]), np.ravel(b[name]))


ACTIVATIONS = st.sampled_from([HARD_SIGMOID, LINEAR, RELU, TANH, box(4.0), box(0.1)])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    hidden=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    rates=st.tuples(ACTIVATIONS, ACTIVATIONS),
    bound=st.none() | st.floats(0.1, 2.0),
    feedback=st.floats(0.01, 2.0),
    seed=st.integers(0, 99),
)
def test_what_was_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory,
    hidden: list[int],
    rates: tuple[Activation, Activation],
    bound: float | None,
    feedback: float,
    seed: int,
) -> None:
    network = layered(
        3,
        tuple(hidden),
        2,
        hidden_rate=rates[0],
        output_rate=rates[1],
        bound=bound,
        feedback=feedback,
    )
    kept, path = made(network, seed), tmp_path_factory.mktemp("kept") / "model.safetensors"
    keep(path, kept)
    same(load_training(path), (kept, memory_of(kept)))


def test_equal_contents_give_equal_bytes(tmp_path: Path) -> None:
    kept = made()
    backwards = TrainedNetwork(
        kept.network,
        dict(reversed(list(kept.params.items()))),
        kept.epochs,
    )
    keep(tmp_path / "a", kept)
    save(tmp_path / "b", backwards, dict(reversed(list(memory_of(kept).items()))))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(tmp_path / "c", *load_training(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    keep(tmp_path / "d", made(seed=1))
    assert (tmp_path / "a").read_bytes() != (tmp_path / "d").read_bytes()


def test_every_cut_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    keep(path, made())
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors is cut short"):
            load(path)


def test_a_file_with_something_appended_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    keep(path, made())
    path.write_bytes(path.read_bytes() + b"\0" * 16)
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load(path)


def forged(change: dict[str, Any], params: dict[str, Any] | None = None) -> bytes:
    """A checkpoint whose description or parameters are not as they should be."""
    result = {"schema": SCHEMA, "network": describe(NETWORK), "epoch": 3} | change
    tensors = {f"params/{n}": v for n, v in made().params.items()} | (params or {})
    return to_bytes(tensors, {"neuro_eqprop": json.dumps(result)})


def altered(**change: Any) -> dict[str, Any]:  # noqa: ANN401
    """The network's description with something changed in its first connection."""
    result = describe(NETWORK)
    result["connections"][0] |= change
    return {"network": result}


def softened(stiffness: object) -> dict[str, Any]:
    result = describe(NETWORK)
    result["layers"][1]["stiffness"] = stiffness
    return {"network": result}


NAN = np.full(5, np.nan, dtype=np.float32)
FORGERIES = {
    "a newer schema": (forged({"schema": "neuro_eqprop.checkpoint/2"}), "checkpoint/2"),
    "no schema": (to_bytes({}, {"neuro_eqprop": "{}"}), "schema"),
    "no object": (to_bytes({}, {"neuro_eqprop": "[1]"}), "does not describe"),
    "no json": (to_bytes({}, {"neuro_eqprop": "{"}), "does not describe"),
    "another program": (to_bytes({"w": np.zeros(3)}, {"format": "pt"}), "another program"),
    "no metadata": (to_bytes({"w": np.zeros(3)}), "another program"),
    "no network": (forged({"network": None}), "does not describe"),
    "no layers": (forged({"network": {"layers": [], "connections": []}}), "does not describe"),
    "unknown operator": (forged(altered(operator="magic")), "'magic' is unknown"),
    "nowhere": (forged(altered(target="nowhere")), "no layer 'nowhere'"),
    "a bound in words": (forged(altered(bound="much")), "does not describe"),
    "no stiffness": (forged(softened(0.0)), "stiffness must be above zero"),
    "stiffness in words": (forged(softened("much")), "does not describe"),
    "a negative epoch": (forged({"epoch": -1}), "no number of epochs"),
    "half an epoch": (forged({"epoch": 1.5}), "no number of epochs"),
    "NaN": (forged({}, {"params/hidden": NAN}), "'hidden' holds values that are not finite"),
    "wrong shape": (forged({}, {"params/hidden": np.zeros(6, np.float32)}), "shape"),
    "one too many": (forged({}, {"params/more": np.zeros(6, np.float32)}), "extra"),
    "not symmetric": (
        forged({}, {"params/hidden->hidden": np.triu(np.ones((5, 5), np.float32))}),
        "not a symmetric",
    ),
    "memory of nothing": (forged({}, {"memory/none/step": np.zeros(1)}), "fits no parameter"),
    "misshapen memory": (forged({}, {"memory/hidden/exp_avg": np.zeros(2)}), "fits no parameter"),
    "NaN in memory": (forged({}, {"memory/hidden/exp_avg": NAN}), "not finite"),
}


@pytest.mark.parametrize("kind", list(FORGERIES))
def test_a_foreign_file_is_refused_with_the_reason(tmp_path: Path, kind: str) -> None:
    content, reason = FORGERIES[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=reason) as caught:
        load(path)
    assert str(path) in str(caught.value)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_broken_byte_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, place: int, flip: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken.safetensors"
    keep(path, made())
    whole = bytearray(path.read_bytes())
    whole[place % len(whole)] ^= flip
    path.write_bytes(whole)
    try:
        found = load(path)
    except CheckpointError:
        return
    assert all(np.isfinite(value).all() for value in found.params.values())


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(CheckpointError):
        load(path)
    assert not (tmp_path / "sprung").exists()


def test_what_is_missing_a_folder_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CheckpointError, match="does not exist"):
            load(path)
    keep(tmp_path / "model", made())
    monkeypatch.setattr(checkpoint, "LARGEST", 100)
    with pytest.raises(CheckpointError, match="larger than 100 bytes"):
        load(tmp_path / "model")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    keep(path, made())
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        keep(path, made(seed=1))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_says_how_a_model_was_made_unless_it_was_trained(tmp_path: Path) -> None:
    converted = TrainedNetwork(NETWORK, made().params, provenance="converted from torch")
    for model in (made(), converted):
        save(tmp_path / "model", model)
        assert load(tmp_path / "model").provenance == model.provenance
