"""A task that computes, fails, sleeps or exits on request, to test an executor or a cluster."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np


def probe(do: str = "work", seed: int = 0, seconds: float = 0.0) -> dict[str, Any]:
    """Compute, fail, sleep or exit, as given by `do`; return the host and the process."""
    match do:
        case "fail":
            raise ValueError("the probe fails on purpose")
        case "sleep":
            time.sleep(seconds)
        case "exit":
            os._exit(3)
    draws = np.random.default_rng(seed).standard_normal((100, 100))
    total = float((draws @ draws.T @ draws).sum())
    return {"total": total, "host": socket.gethostname(), "process": os.getpid()}
