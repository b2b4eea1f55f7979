"""An experiment that computes, fails, sleeps or exits on request, to test executors."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sims.claims.claim import Json, UndecidedError


def probe(arguments: Mapping[str, Any], seed: int) -> Json:
    """Compute, fail, sleep or exit, as given by the argument `do`."""
    match arguments["do"]:
        case "fail":
            raise ValueError("fails on request")
        case "undecided":
            raise UndecidedError("undecided on request")
        case "sleep":
            time.sleep(float(arguments["seconds"]))
        case "die":
            os._exit(3)
    draws = np.random.default_rng(seed).standard_normal((300, 300))
    began = time.perf_counter()
    total = float((draws @ draws.T @ draws).sum())
    return {"total": total, "seconds": time.perf_counter() - began}
