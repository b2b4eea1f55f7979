"""The child process of a run on Lava: builds the networks of a run, and runs them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from neuro_eqprop.files.subprocess import guard, progress, report


def main(form: str, folder: str, options: str) -> None:
    """Run what is in the folder, with the networks that the module `form` builds of it.

    `options` are those of its `build`, as JSON text.
    """
    place = Path(folder)
    guard(place)
    try:
        run(form, place, json.loads(options))
    except BaseException:
        report(place, traceback.format_exc())
        raise


def run(form: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Run each network from its first to its last step."""
    alive = progress(folder)
    alive[0] += 1
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg

    alive[0] += 1
    for process, steps in import_module(form).build(folder, **options):
        alive[0] += 1
        process.create_runtime(Loihi2SimCfg(select_tag=process.tag))
        alive[0] += 1
        process.run(RunSteps(num_steps=steps))
        process.stop()
        alive[0] += 1
