"""A variational autoencoder trained by EqProp, and its evidence lower bound.

With x a sample, n ~ N(0, I) drawn anew for each presentation, S the latent deviation:

    h = tanh(W x + ...),   z = V h + a + S n + ...,   d = tanh(U z + ...),   r = R d + b

where `...` is feedback. The posterior of a latent z is N(m(x), S^2 I), with m the equilibrium of z
at n = 0, and the prior N(0, I). The random draw is a part of the input, so that the free phase is
deterministic (the reparameterisation of Kingma & Welling 2014) and needs no extra rule. With v
the variance of a pixel, training minimises

    C = |r - x|^2 / 2 + v |z|^2 / 2

whose mean over n has the gradient of -v times the bound, as E|z|^2 = |m|^2 + constant. The second
term is a block of output units sqrt(v) z with the target zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any, ClassVar

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.dynamics.inference import SETTLED, infer
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import adapt
from sims.claims.claim import Json
from sims.claims.experiments.common import (
    data_of,
    last_params,
    study_of,
)

DRAWS = 10
"""Latent draws of a test sample."""


@dataclass(frozen=True, slots=True)
class Block:
    """y[c:d] = W x[a:b], or `scale` x[a:b] without a weight, and zero in the other targets."""

    sources: tuple[int, int]
    targets: tuple[int, int]
    width: int
    """Number of target units."""
    scale: float = 0.0
    stored_name: ClassVar[str] = "block"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(d - c, b - a), or (0,) without a weight."""
        (a, b), (c, d) = self.sources, self.targets
        return (0,) if self.scale else (d - c, b - a)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        part, total = x[:, slice(*self.sources)], ops.zeros((len(x), self.width))
        total[:, slice(*self.targets)] = self.scale * part if self.scale else part @ weight.T
        return onto + total

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain times the transposed product."""
        part, total = y[:, slice(*self.targets)], ops.zeros((len(y), *shape))
        total[:, slice(*self.sources)] = self.scale * part if self.scale else part @ weight
        return onto + gain * total

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post[c:d] pre[a:b]^T."""
        if self.scale:
            return ops.zeros((0,))
        return post[:, slice(*self.targets)].T @ pre[:, slice(*self.sources)]

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W, or `scale`."""
        return [self.scale or ops.spectral_norm(weight)]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Sizes and variances of the autoencoder."""

    pixels: int
    hidden: int
    latent: int
    feedback: float
    deviation: float
    """S, of the posterior."""
    variance: float
    """v, of a pixel in training."""


def autoencoder(s: Shapes) -> Network:
    """The autoencoder, with input (x, n) and output (r, sqrt(v) z)."""
    n, m, g = s.pixels, s.latent, s.feedback
    layers = (
        Layer("input", (n + m,), LINEAR, Role.INPUT),
        Layer("encoder", (s.hidden,), TANH),
        Layer("latent", (m,), LINEAR, stiffness=g),
        Layer("decoder", (s.hidden,), TANH, stiffness=g**2),
        Layer("output", (n + m,), LINEAR, Role.OUTPUT, stiffness=g**3),
    )
    prior = Block((0, m), (n, n + m), n + m, scale=sqrt(s.variance))
    connections = (
        Connection("input", "encoder", Block((0, n), (0, s.hidden), s.hidden)),
        Connection("input", "latent", Block((n, n + m), (0, m), m, scale=s.deviation)),
        Connection("encoder", "latent"),
        Connection("latent", "decoder"),
        Connection("decoder", "output", Block((0, s.hidden), (0, n), n + m)),
        Connection("latent", "output", prior),
    )
    return Network(layers, connections)


def decoder(s: Shapes) -> Network:
    """The decoder alone, with the latents as its input."""
    g = s.feedback
    layers = (
        Layer("latent", (s.latent,), LINEAR, Role.INPUT),
        Layer("decoder", (s.hidden,), TANH),
        Layer("output", (s.pixels,), LINEAR, Role.OUTPUT, stiffness=g),
    )
    return Network(layers, (Connection("latent", "decoder"), Connection("decoder", "output")))


def settle(network: Network, params: Mapping[str, Array], x: Array, layer: str) -> Array:
    """The rates of a layer at equilibrium."""
    ops = TorchOps(torch.float64)
    tensors = {name: ops.from_numpy(params[name]) for name in network.parameters()}
    rates: Array = infer(ops, network, tensors, x, SETTLED).state[layer]
    return rates


def decoder_parameters(s: Shapes, params: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters of the decoder, without the biases of the prior block of the output."""
    taken = {name: params[name] for name in decoder(s).parameters()}
    return taken | {"output": params["output"][: s.pixels]}


def bound(s: Shapes, params: Mapping[str, Array], data: Dataset, rng: np.random.Generator) -> Json:
    """The evidence lower bound of the test samples in nats, and their reconstruction error.

    The variance of a pixel is that of the reconstructed training samples.
    """
    mean = {part: latent_mean(s, params, split.x) for part, split in data.parts.items()}
    squared = {
        part: np.mean(
            [
                ((decode(s, params, drawn(mean[part], s, rng)) - split.x) ** 2).sum(axis=1)
                for _ in range(DRAWS)
            ]
        )
        for part, split in data.parts.items()
    }
    v = squared["train"] / s.pixels
    divergence = 0.5 * (
        (mean["test"] ** 2).sum(axis=1).mean()
        + s.latent * (s.deviation**2 - 1 - 2 * log(s.deviation))
    )
    spread = ((data.test.x - data.train.x.mean(axis=0)) ** 2).sum(axis=1).mean()
    one = ((data.train.x - data.train.x.mean(axis=0)) ** 2).mean()
    return {
        "error": float(squared["test"] / spread),
        "bound": float(gaussian(squared["test"], v, s.pixels) - divergence),
        "divergence": float(divergence),
        "without_latent": float(gaussian(spread, one, s.pixels)),
    }


def gaussian(squared: float, variance: float, size: int) -> float:
    """The log density of a Gaussian with one variance at a squared distance."""
    return -squared / (2 * variance) - size / 2 * log(2 * pi * variance)


def latent_mean(s: Shapes, params: Mapping[str, Array], x: Array) -> Array:
    """m(x), the mean of the posterior."""
    still = np.concatenate([x, np.zeros((len(x), s.latent))], axis=1)
    return settle(autoencoder(s), params, still, "latent")


def drawn(mean: Array, s: Shapes, rng: np.random.Generator) -> Array:
    """Latents drawn from the posterior."""
    return mean + s.deviation * rng.standard_normal(mean.shape)


def decode(s: Shapes, params: Mapping[str, Array], z: Array) -> Array:
    """The outputs r of the decoder for latents z."""
    return settle(decoder(s), decoder_parameters(s, params), z, "output")


def nearest_distance(a: Array, b: Array) -> float:
    """The mean distance of a sample of one set to the nearest of the other, over both sets."""
    from scipy.spatial.distance import cdist

    between = cdist(a, b)
    return float(between.min(axis=0).mean() + between.min(axis=1).mean()) / 2


def variational(arguments: Mapping[str, Any], seed: int) -> Json:
    """The evidence lower bound, and distances of generated samples to the test samples."""
    data, study = data_of(arguments), study_of(arguments, seed)
    (hidden, latent), rng = study.get("hidden"), np.random.default_rng([seed, 1])
    s = Shapes(
        data.features,
        hidden,
        latent,
        study.get("feedback"),
        arguments["deviation"],
        arguments["variance"],
    )
    network = autoencoder(s)
    empty = np.zeros((len(data.train), latent))
    padded = np.concatenate([data.train.x, empty], axis=1)

    def draw_noise(x: Values, draw: np.random.Generator) -> Values:
        noise = torch.from_numpy(draw.standard_normal((len(x), latent))).to(x)
        return torch.cat([x[:, : data.features], noise], dim=1)

    split = Split(padded, data.train.y)
    loop = TrainingLoop(
        adapt(study, {"lr_schedule": "CosineAnnealingLR"}),
        network,
        Dataset.from_splits("padded", split, split, data.classes, (padded.shape[1],)),
        targets=padded,
        ops=TorchOps(torch.float64),
        augment=draw_noise,
    )
    params = last_params(loop)
    test = data.test.x
    pixels = data.train.x.mean(axis=0), data.train.x.std(axis=0)
    independent = pixels[0] + pixels[1] * rng.standard_normal(test.shape)
    generated = decode(s, params, rng.standard_normal((len(test), latent)))
    return bound(s, params, data, rng) | {
        "distance": nearest_distance(generated, test),
        "distance_of_pixels": nearest_distance(independent, test),
        "distance_of_digits": nearest_distance(data.train.x[: len(test)], test),
    }
