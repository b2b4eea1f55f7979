"""What docs/models-numbers.md says beside its tables."""

from __future__ import annotations

HEAD = [
    "Made by `.venv/bin/python sims/rate/models.py page`; do not edit. The figure of a run is that",
    "of its last epoch, all seeds that were run are shown, and no epoch or seed was picked. Test",
    "samples settle for as many steps as in training; beside it stands the same with four times",
    "as many: where both agree, the answers are those of equilibria. Time is process time of the",
    "training alone, on one thread of a busy machine.",
]
GROUPS: dict[str, list[str]] = {
    "layered": [
        "Layered networks on MNIST",
        "Hidden layers of 512 with ReLU, a linear output, the squared error, Adam. Where there are",
        "more than one, what comes back is scaled by 0.1.",
        "",
    ],
    "looped": [
        "LoopedMLP, 256 units, spectral bound 0.95",
        "tanh, read by a softmax (cross-entropy). The norm is that of the Jacobian of a settling",
        "step at the equilibrium of each test sample, the largest of all of them.",
        "",
    ],
    "conv": [
        "Convolutional, average pooling",
        "5 by 5 kernels, 16 and 32 channels, ReLU, means of 2 by 2 after each, a dense linear",
        "output: 18 thousand parameters.",
        "",
    ],
    "transformer": [
        "Transformer over 16 patches of 7 by 7, MNIST",
        "96 units a token and 96 of memory, energy attention, all tokens read by a softmax.",
        "",
    ],
    "recall": [
        "Associative recall",
        "Four pairs of 8 keys and 8 values, then a key; the value of it is asked for and only the",
        "last token is read. Chance is 12.5 %; guessing among the values shown gives about 34 %.",
        "",
    ],
}
MISSES = [
    "- All rows have one seed so far, where three are asked for.",
    "- Rows that were not run were left out for lack of machine time, not because they failed.",
    "- The ratio of 784-512-10 at batch 128 is above the 1.2 that is asked for; on a busy machine",
    "  it varies from 1.2 to 1.6 (`sims/bench/training.py` measures it alone).",
    "- Associative recall by EqProp stays two points behind BPTT on the same model. A few samples",
    "  have not come to rest after the steps of training (a last change of 0.14), where the update",
    "  need not be the gradient; whether that is the reason was not tested.",
]
CHOICE = [
    "Learning rates, bounds, steps and beta come from earlier prototypes of these models, some of",
    "which were judged on the test samples: they are a little hopeful. What was changed since was",
    "chosen on training samples alone: the steps of the convolutional network and no damping in",
    "the transformer by the cosine with the settled update after some tens of batches; the start",
    "and sharpness of associative recall by accuracy on a held-out tenth of its training samples.",
    "There, embeddings of twice the usual size reached 35 % after three epochs with sharpness 1",
    "and 36 % after two with 5.66 (damping 0.8), four times the size 61 % after two (the same) and",
    "82 % after three (no damping). That last one, with beta 0.5, 8 free and 4 nudged steps, ended",
    "at 92 % of the held-out samples; beta 0.25 with 12 and 6 steps were then taken without a",
    "trial of their own.",
]
