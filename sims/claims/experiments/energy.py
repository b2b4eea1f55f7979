"""Energy of an inference on a neuromorphic chip over that of the dense pass on a measured GPU.

`total` includes static power: that of the chip for the duration of the inference, and the idle
power of the GPU for the time of an inference at that batch size. `dynamic` compares the events of
the chip with the GPU above idle. Both leave out the input current, which a host computes, in favour
of the chip; `hosted` adds its multiplications to the chip at the cost of the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.chips.energy.estimate import Estimate, estimate_use
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.workload import Workload, network_shape
from neuro_eqprop.runs.simulation import run_spikes
from neuro_eqprop.runs.simulation_settings import SimulationSettings
from neuro_eqprop.spiking.lowered import lower_network
from sims.claims.claim import Json, UndecidedError
from sims.claims.experiments.common import data_of, study_of, train_study


def gpu_joules(profile: Profile, batch: int, macs: int) -> dict[str, tuple[float, float, float]]:
    """Joules per sample of a dense pass (value, low, high), above idle and in total."""
    point = next(each for each in profile.batches if each.batch == batch)
    idle = profile.known("power.board")
    if idle is None or not point.inferences_per_second:
        raise UndecidedError(f"{profile.name} has no idle power or speed at batch {batch}")
    cost = point.joules_per_mac
    above = (macs * cost.value, macs * cost.low, macs * cost.high)
    rest = tuple(p / point.inferences_per_second for p in (idle.value, idle.low, idle.high))
    return {
        "dynamic": above,
        "total": (above[0] + rest[0], above[1] + rest[1], above[2] + rest[2]),
    }


def event_joules(found: Estimate) -> tuple[float, float, float]:
    """Joules of the events of the chip: all terms but static power."""
    terms = [term.joules for term in found.terms if not term.key.startswith("power.")]
    return sum(t.value for t in terms), sum(t.low for t in terms), sum(t.high for t in terms)


def ratios(arguments: Mapping[str, Any], seed: int) -> Json:
    """For each chip and batch size, joules of the GPU over those of the chip (value, low, high)."""
    study, data = study_of(arguments, seed), data_of(arguments)
    trained = train_study(study, data)
    split = data.test.take(slice(0, min(arguments["samples"], len(data.test))))
    spiking = lower_network(trained.network, trained.params, code=arguments["code"])
    counted = run_spikes(spiking, split.x, SimulationSettings(steps=arguments["steps"]))
    workload = Workload(
        network_shape(counted.network, bits=8),
        counted.counts,
        counted.samples,
        counted.steps,
        spiking.input.name,
        counted.dense_macs,
    )
    gpu, rows = load_profile(arguments["gpu"]), []
    settings = EstimateSettings()
    for name in arguments["chips"]:
        estimate = estimate_use(workload, load_profile(name), settings, learning=False)
        if estimate.joules is None:
            continue
        whole = (estimate.joules.value, estimate.joules.low, estimate.joules.high)
        for batch in arguments["batches"]:
            theirs = gpu_joules(gpu, batch, workload.dense_macs)
            host = workload.per_sample("host_macs") / workload.dense_macs
            hosted = tuple(a + host * b for a, b in zip(whole, theirs["total"], strict=True))
            sides = {"dynamic": event_joules(estimate), "total": whole, "hosted": hosted}
            row: Json = {"chip": name, "batch": batch, "unknown": len(estimate.missing)}
            for side, ours in sides.items():
                if ours[0] > 0:
                    dense = theirs["dynamic" if side == "dynamic" else "total"]
                    row[side] = [dense[0] / ours[0], dense[1] / ours[2], dense[2] / ours[1]]
            rows.append(row)
    return {"rows": rows, "test_accuracy": trained.accuracy(), "dense_macs": workload.dense_macs}
