"""Record what a restructuring of the code must not change, and compare against the record.

    python sims/guard/guard.py record            # writes sims/guard/recorded.json
    python sims/guard/guard.py compare           # exit 1 and a table if anything differs
    python sims/guard/guard.py compare train     # only the entries that start with "train"

Everything goes through the command line, which is a contract, so the same script runs before and
after a move. The claims need MNIST: name its folder in NEURO_EQPROP_DATA. Digests of trained
weights depend on the CPU and on the library versions: record and compare on one machine. Times,
dates and paths are left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
VOLATILE = (
    "seconds",
    "compile_seconds",
    "images_per_second",
    "run",
    "path",
    "traces",
    "bytes",
    "out",
    "page",
)
"""Keys of JSON results that hold a time, a rate of work or a path."""
TRAINED = {
    "layered": [],
    "layered-deep": ["--hidden", "48,32"],
    "looped": ["--model", "looped"],
    "toroidal": ["--model", "toroidal"],
    "modern": ["--model", "modern"],
    "conv": ["--model", "conv"],
    "multiscale": ["--model", "multiscale"],
    "predictive": ["--model", "predictive"],
    "transformer-linear": ["--model", "transformer", "--set", "patch=4"],
    "transformer-softmax": [
        "--model",
        "transformer",
        "--set",
        "patch=4",
        "--set",
        "attention=softmax",
    ],
    "asymmetric": ["--model", "looped", "--set", "symmetric=false", "--rule", "asymmetric"],
    "hybrid": ["--hidden", "48,32", "--set", "stem=1", "--rule", "hybrid"],
    "vector-field": ["--rule", "vector-field"],
    "holomorphic": ["--nudging", "holomorphic", "--activation", "tanh", "--output", "linear"],
    "backprop": ["--rule", "backprop"],
    "bptt": ["--rule", "bptt"],
    "implicit": ["--rule", "implicit"],
}
LEARNED = {
    "graded": ["--code", "graded"],
    "rate": ["--code", "rate"],
    "8-bits": ["--code", "graded", "--bits", "8"],
    "rate-baseline": ["--on", "rate"],
}
EVALUATED = {
    "rate": [],
    "numpy": [],
    "reference": ["--code", "graded"],
    "emulator": ["--code", "rate"],
    "emulator-graded": ["--on", "emulator", "--code", "graded"],
    "emulator-bits": ["--on", "emulator", "--code", "graded", "--bits", "8"],
    "emulator-paired": ["--on", "emulator", "--code", "paired"],
    "emulator-predictive": ["--on", "emulator", "--code", "predictive"],
    "emulator-bernoulli": ["--on", "emulator", "--code", "bernoulli"],
    "emulator-spikes-in": ["--on", "emulator", "--input", "rate"],
    "snntorch": ["--code", "rate"],
    "brian2": ["--code", "graded"],
    "brian2-biology": ["--code", "rate"],
    "lava": ["--code", "graded"],
    "lava-fused": ["--code", "rate"],
    "lava-stock": ["--code", "rate"],
}
CLAIMS = ("gradient-symmetric", "tp-eqprop", "symmetric-saturates")


def call(*words: str, module: str = "neuro_eqprop") -> dict[str, Any]:
    """The JSON that a command prints, with the random name of the temporary folder replaced."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words, "--json"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    if done.returncode:
        return {"exit": done.returncode, "error": done.stderr.strip().splitlines()[-1:]}
    found: dict[str, Any] = json.loads(re.sub(r"/[^\" ]*/guard-[^/\" ]*", "FOLDER", done.stdout))
    return found


def steady(value: Any) -> Any:  # noqa: ANN401
    """JSON without what may differ between two runs of the same code."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in sorted(value.items()) if k not in VOLATILE}
    return [steady(each) for each in value] if isinstance(value, list) else value


def digest(data: bytes) -> str:
    """The first half of the SHA-256, enough to tell two apart."""
    return sha256(data).hexdigest()[:32]


def of_json(value: Any) -> str:  # noqa: ANN401
    """The digest of a JSON value."""
    return digest(json.dumps(steady(value), sort_keys=True).encode())


def of_model(run: Path) -> str:
    """The digest of a model: its tensors alone, since the header may get new fields."""
    raw = (run / "model.safetensors").read_bytes()
    return digest(raw[8 + int.from_bytes(raw[:8], "little") :])


def of_arrays(path: Path) -> dict[str, str]:
    """The digests of all numeric arrays in an HDF5 file, by name."""
    import h5py

    found: dict[str, str] = {}

    def look(name: str, item: Any) -> None:  # noqa: ANN401
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "iufb":
            found[name] = digest(item[()].tobytes())

    with h5py.File(path) as file:
        file.visititems(look)
    return found


def training(folder: Path) -> dict[str, Any]:
    """Two epochs of every model and rule on the digits."""
    found = {}
    for name, words in TRAINED.items():
        out = folder / name
        result = call("train", "--out", str(out), "--epochs", "2", "--seed", "3", *words)
        found[name] = result if "exit" in result else of_model(out)
    return found


def learning(folder: Path) -> dict[str, Any]:
    """Learning inside the emulator."""
    found: dict[str, Any] = {}
    for name, words in LEARNED.items():
        out = folder / f"learn-{name}"
        base = ["learn", "--out", str(out), "--samples", "200", "--epochs", "2", "--hidden", "32"]
        result = call(*base, *([] if "--on" in words else ["--on", "emulator"]), *words)
        found[name] = (
            result
            if "exit" in result
            else {"model": of_model(out), "json": steady(without_sentences(result))}
        )
    return found


def evaluating(folder: Path) -> dict[str, Any]:
    """Five digits on every backend."""
    found = {}
    for name, words in EVALUATED.items():
        on = [] if "--on" in words else ["--on", name]
        result = call("evaluate", str(folder / "layered"), "--samples", "5", *on, *words)
        found[name] = steady(result)
    return found


def translating(folder: Path) -> dict[str, Any]:
    """The digests of the spiking networks."""
    found = {}
    for code in ("rate", "graded"):
        path = folder / f"{code}.nir"
        result = call("translate", str(folder / "layered"), "--out", str(path), "--code", code)
        found[code] = result.get("digest", result)
    return found


def recording(folder: Path) -> dict[str, Any]:
    """The arrays of traces, from rates and from spikes, and their comparison."""
    found: dict[str, Any] = {}
    paths = []
    for on in ("rate", "emulator", "brian2"):
        path = folder / f"{on}.h5"
        words = ["--samples", "2", "--phases", "--record", "hidden->output:hebbian"]
        code = [] if on == "rate" else ["--code", "graded"]
        result = call(
            "simulate", str(folder / "layered"), "--on", on, "--traces", str(path), *words, *code
        )
        found[on] = result if "exit" in result else of_arrays(path)
        paths.append(str(path))
    found["compare"] = steady(without_sentences(call("compare", *paths[:2])))
    return found


def without_sentences(value: Any) -> Any:  # noqa: ANN401
    """JSON with an empty text for every sentence, whose wording may change."""
    if isinstance(value, dict):
        return {key: without_sentences(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_sentences(each) for each in value]
    return "" if isinstance(value, str) and " " in value else value


def pricing(folder: Path) -> dict[str, Any]:
    """The numbers of `energy`: by profile inference and learning, and everything else."""
    result = call("energy", str(folder / "layered"), "--samples", "10")
    if "profiles" not in result:
        return result
    result = without_sentences(result)
    found: dict[str, Any] = {}
    for each in result.pop("profiles"):
        uses = {use: of_json(each.pop(use)) for use in ("inference", "learning")}
        found[each["profile"]] = uses | {"placement": of_json(each)}
    workload = result["counted"].pop("lessons")
    return found | {"learning": of_json(workload), "rest": of_json(result)}


def judging(folder: Path) -> dict[str, Any]:
    """Three claims of the research notes, every cell of the small budget; one of them needs MNIST.

    A cell that could not run has its error in place of a digest.
    """
    out = folder / "claims"
    words = (*CLAIMS, "--budget", "small", "--workers", "2", "--out", str(out))
    result = call(*words, module="sims.claims")
    if "exit" in result:
        return result
    cells = {
        path.stem[:16]: json.loads(path.read_text()) for path in sorted((out / "cells").iterdir())
    }
    return {key: cell["error"] or of_json(cell["values"]) for key, cell in cells.items()}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "train": training,
    "learn": learning,
    "evaluate": evaluating,
    "translate": translating,
    "simulate": recording,
    "energy": pricing,
    "claims": judging,
}


def flat(value: Any, name: str = "") -> dict[str, Any]:  # noqa: ANN401
    """A nested record as one level, by dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    rows: dict[str, Any] = {}
    for key, each in value.items():
        rows |= flat(each, f"{name}/{key}" if name else key)
    return rows


def measure(chosen: list[str]) -> dict[str, Any]:
    """Run the chosen parts; all but training and learning need the layered run."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="guard-") as place:
        folder = Path(place)
        if "train" not in chosen:
            call("train", "--out", str(folder / "layered"), "--epochs", "2", "--seed", "3")
        for name in chosen:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found[name] = PARTS[name](folder)
    return found


def main(words: list[str]) -> int:
    """Record, or compare."""
    verb, *chosen = words or ["compare"]
    parts = [name for name in PARTS if not chosen or name in chosen]
    found = measure(parts)
    if verb == "record":
        if chosen:
            found = json.loads(RECORDED.read_text()) | found
        RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        return 0
    before = json.loads(RECORDED.read_text())
    old, new = flat({name: before[name] for name in parts}), flat(json.loads(json.dumps(found)))
    differ = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    for name in parts:
        mine = [key for key in old.keys() | new.keys() if key.split("/")[0] == name]
        off = [key for key in differ if key in mine]
        print(f"{name:10} {len(mine) - len(off):4} equal {len(off):4} different")
    for key in differ:
        print(f"  {key}: {old.get(key)} -> {new.get(key)}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
