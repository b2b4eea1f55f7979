"""The rows of docs/results/models-numbers.md: the command of each, and its goal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict

RELU = "--activation relu --output linear --beta 0.25"
PLAIN = f"--dataset mnist --epochs 15 --batch 128 --learning-rate 0.001 {RELU}"
DEEP = PLAIN.replace("--epochs 15", "--epochs 10")
ONE = PLAIN.replace("--batch 128", "--batch 64") + (
    " --hidden 512 --set free_steps=4 --set nudged_steps=2"
)
MOVED = f"{ONE} --set shift=1"
TWO = f"{DEEP} --hidden 512,512 --feedback 0.1 --bound 1.9 --set free_steps=3 --set nudged_steps=2"
THREE = (
    f"{DEEP} --hidden 512,512,512 --feedback 0.1 --bound 1.4 --set free_steps=3 "
    "--set nudged_steps=2"
)
LOOPED = (
    "--model looped --hidden 256 --activation tanh --output linear --bound 0.95 --epochs 15 "
    "--batch 128 --learning-rate 0.003 --beta 0.3 --set cost=cross_entropy --set free_steps=10 "
    "--set nudged_steps=4"
)
CONV = (
    f"--model conv --hidden 16,32 {RELU} --feedback 0.1 --bound 2.5 --epochs 8 --batch 64 "
    "--learning-rate 0.003 --set free_steps=3 --set nudged_steps=1"
)
CLOTHES = (
    f"--dataset fashion-mnist --model conv --hidden 16,64 {RELU} --feedback 0.02 --bound 5.5 "
    "--epochs 15 --batch 64 --learning-rate 0.003 --set free_steps=3 --set nudged_steps=1"
)
TOKENS = (
    "--dataset mnist --model transformer --hidden 96 --bound 0.7 --beta 0.5 --epochs 8 --batch 256 "
    "--learning-rate 0.004 --set free_steps=6 --set nudged_steps=3 --set attention_bound=1.2"
)
LINEAR = TOKENS.replace("attention_bound=1.2", "attention_bound=1") + (
    " --set attention=linear --set attention_scale=0.15"
)
SOFTMAX = (
    TOKENS.replace("attention_bound=1.2", "attention_bound=1")
    + " --set attention=softmax --set attention_scale=0.3"
)
RECALL = (
    "--dataset recall --model transformer --hidden 32 --bound 0.5 --beta 0.25 --epochs 10 "
    "--batch 64 --learning-rate 0.003 --set query=true --set heads=1 --set attention_bound=1 "
    "--set free_steps=12 --set nudged_steps=6"
)
SHARP = f"{RECALL} --set attention=softmax --set attention_scale=0.5 --set attention_sharpness=5.66"


def displaced(options: str, *, beta: float, free: int, nudged: int, feedback: float = 0.02) -> str:
    """The same training with one nudged phase of a small beta and with another feedback."""
    found = re.sub(r"--beta [0-9.]+", f"--nudging positive --beta {beta}", options)
    found = re.sub(r"--feedback [0-9.]+", f"--feedback {feedback}", found)
    found = re.sub(r"free_steps=[0-9]+", f"free_steps={free}", found)
    return re.sub(r"nudged_steps=[0-9]+", f"nudged_steps={nudged}", found)


CONTRACTING = displaced(
    LINEAR.replace("attention_bound=1", "attention_bound=0.7"), beta=0.001, free=8, nudged=5
)
"""With a norm of 0.7 every sample settles, so that the gradient at the equilibrium is defined."""


class Phases(TypedDict):
    """Settings of `displaced`."""

    beta: float
    free: int
    nudged: int


SMALL: Phases = {"beta": 0.002, "free": 2, "nudged": 1}
SWEEP: Phases = {"beta": 0.002, "free": 1, "nudged": 1}
"""One sweep a phase, which is enough where the feedback is tiny."""
TINY = 0.00002
ONE_SMALL = ONE.replace("--beta 0.25", "--beta 0.05 --feedback 0.02").replace(
    "free_steps=4 --set nudged_steps=2", "free_steps=2 --set nudged_steps=1"
)
WIDE_SMALL = (
    displaced(TWO, **SMALL).replace("512,512", "2048,2048").replace("--epochs 10", "--epochs 4")
)
DEEP_SMALL = displaced(THREE, **SMALL).replace("512,512,512", "512,512,512,512,512,512")
LOOPED_SMALL = displaced(LOOPED, beta=0.005, free=5, nudged=3)


@dataclass(frozen=True, slots=True)
class Row:
    """A training: its title, its group, its options of `train`, its goal."""

    title: str
    group: str
    options: str
    reach: str = ""


ROWS = {
    "one": Row("784-512-10", "layered", ONE, "98.4, and backprop - 0.1"),
    "one-bp": Row("784-512-10, backprop", "layered", f"{ONE} --rule backprop"),
    "one-moved": Row("784-512-10, images shifted", "layered", MOVED, "98.4, and backprop - 0.1"),
    "one-moved-bp": Row(
        "784-512-10, images shifted, backprop", "layered", f"{MOVED} --rule backprop"
    ),
    "two": Row("784-512-512-10", "layered", TWO, "98.4"),
    "three": Row("784-512-512-512-10", "layered", THREE, "98.2"),
    "one-small": Row("784-512-10, feedback 0.02", "layered", ONE_SMALL, "98.4"),
    "two-small": Row("784-512-512-10, feedback 0.02", "layered", displaced(TWO, **SMALL), "98.4"),
    "three-small": Row(
        "784-512-512-512-10, feedback 0.02", "layered", displaced(THREE, **SMALL), "98.2"
    ),
    "two-tiny": Row(
        "784-512-512-10, feedback 0.00002",
        "layered",
        displaced(TWO, **SWEEP, feedback=TINY),
        "98.4",
    ),
    "three-tiny": Row(
        "784-512-512-512-10, feedback 0.00002",
        "layered",
        displaced(THREE, **SWEEP, feedback=TINY),
        "98.2",
    ),
    "wide-small": Row("784-2048-2048-10, feedback 0.02", "layered", WIDE_SMALL),
    "deep-small": Row("six hidden of 512, feedback 0.02", "layered", DEEP_SMALL),
    "looped-small": Row(
        "looped 256, MNIST, one nudged phase", "looped", f"--dataset mnist {LOOPED_SMALL}", "98.0"
    ),
    "looped": Row("looped 256, MNIST", "looped", f"--dataset mnist {LOOPED}", "98.0"),
    "looped-fashion": Row(
        "looped 256, Fashion-MNIST", "looped", f"--dataset fashion-mnist {LOOPED}", "88.8"
    ),
    "conv": Row("convolutional, MNIST", "conv", f"--dataset mnist {CONV}", "99.0"),
    "conv-small": Row(
        "convolutional, MNIST, feedback 0.02",
        "conv",
        f"--dataset mnist {displaced(CONV, **SMALL)}",
        "99.0",
    ),
    "conv-tiny": Row(
        "convolutional, MNIST, feedback 0.00002",
        "conv",
        f"--dataset mnist {displaced(CONV, **SWEEP, feedback=TINY)}",
        "99.0",
    ),
    "conv-fashion-tiny": Row(
        "convolutional, Fashion-MNIST, feedback 0.00002",
        "conv",
        displaced(CLOTHES, **SWEEP, feedback=TINY),
        "90.0",
    ),
    "conv-fashion-small": Row(
        "convolutional, Fashion-MNIST, feedback 0.0025",
        "conv",
        displaced(CLOTHES, **SMALL, feedback=0.0025),
        "90.0",
    ),
    "conv-fashion": Row("convolutional, Fashion-MNIST", "conv", CLOTHES, "90.0"),
    "conv-fashion-bp": Row(
        "convolutional, Fashion-MNIST, backprop",
        "conv",
        f"{CLOTHES.replace('0.02 --bound 5.5', '0.1')} --rule backprop",
    ),
    "linear": Row("linear attention", "transformer", LINEAR, "97.5, and BPTT - 0.3"),
    "linear-small": Row(
        "linear attention, norm 0.7, one nudged phase",
        "transformer",
        CONTRACTING,
        "97.5",
    ),
    "linear-small-bptt": Row(
        "linear attention, norm 0.7, BPTT", "transformer", f"{CONTRACTING} --rule bptt"
    ),
    "linear-bptt": Row("linear attention, BPTT", "transformer", f"{LINEAR} --rule bptt"),
    "softmax": Row("softmax attention", "transformer", SOFTMAX, "97.0, and BPTT - 0.3"),
    "softmax-bptt": Row("softmax attention, BPTT", "transformer", f"{SOFTMAX} --rule bptt"),
    "recall": Row(
        "softmax attention, 25 epochs", "recall", SHARP.replace("--epochs 10", "--epochs 25"), "97"
    ),
    "recall-bptt": Row("softmax attention, BPTT, 10 epochs", "recall", f"{SHARP} --rule bptt"),
    "recall-linear": Row(
        "linear attention", "recall", f"{RECALL} --set attention=linear --set attention_scale=0.3"
    ),
    "recall-none": Row(
        "no attention", "recall", f"{RECALL} --set attention=none", "near chance, 12.5"
    ),
}
