"""What a transformer starts with."""

from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.networks.architectures import Block, transformer
from neuro_eqprop.networks.initialize import EMBEDDING_GAIN, INITIAL_ATTENTION_NORM, initialize
from neuro_eqprop.networks.operators import Attention, AttentionKind


@pytest.mark.parametrize("bound", [0.5, 1.2])
def test_queries_and_keys_start_alike_within_their_bound(bound: float) -> None:
    block = Block(12, 6, Attention(AttentionKind.SOFTMAX, 2, 0.5), 0.7, bound)
    params = initialize(transformer((5, 7), block, 3, patch=1), np.random.default_rng(0))
    query, key = params["tokens->tokens"]
    np.testing.assert_array_equal(query, key)
    np.testing.assert_allclose(
        query @ query.T, min(INITIAL_ATTENTION_NORM, bound) ** 2 * np.eye(12), atol=1e-9
    )


def test_embeddings_start_as_large_as_their_fans_ask() -> None:
    block = Block(96, 6, None, 0.7, 1.0)
    rng = np.random.default_rng(0)
    patches = initialize(transformer((1, 28, 28), block, 3, patch=7), rng)["input->tokens"]
    assert patches.std() == pytest.approx((2 / (49 + 96)) ** 0.5, rel=0.05)
    tokens = initialize(transformer((5, 17), block, 3, patch=1), rng)["input->tokens"]
    assert tokens.std() == pytest.approx(EMBEDDING_GAIN * (2 / (17 + 96)) ** 0.5, rel=0.05)
