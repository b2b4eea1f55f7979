"""The rule of `neuro_eqprop.spiking.plasticity` as Brian2 equations.

A spiking unit has a trace dr/dt = -r / tau_trace that increases with each spike; the trace of a
graded unit is the sum of its messages. Events gate the rest: `tick` in every step of a phase,
`window` where tags accumulate. Once per sample, on a separate clock, there is a pause of one step:
neurons are silent, weights commit, and the next sample is loaded. The first pause precedes the
first sample.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.simulators.brian2.equations import step, tables
from neuro_eqprop.simulators.brian2.setup import Handle
from neuro_eqprop.spiking.ir import Neuron, Spiking
from neuro_eqprop.spiking.plasticity import COMMIT, LEAST, LearningRule

PAUSE = Phase(COMMIT, 0.0, 1, 1)
EVENTS = {
    "tick": "phase_of(t) >= 0",
    "window": "factor(t) != 0",
    "readout": "reads_out(t) > 0.5",
}

# Brian2 may reorder the terms of a sum, so a statement has at most one addition.
ADD_IMPULSE = """
r = r + impulse * fired
r = r * int(r >= least)
"""
LOAD_SAMPLE = """
outside = input_current(t, i)
pull = input_pull(t, i)
a_one = 0
a_beta = 0
{message} = 0
"""
REST_SPIKING = """
u = 0
v = threshold / 2
"""
REST_GRADED = """
g_one = 0
g_beta = 0
x = 0
sent = 0
"""
ADD_TAG = """
gated_pre = factor(t) * r_pre
grown = gated_pre * r_post
m = m + grown
"""
CHANGE_WEIGHT = """
change = eta(t) * m
wanted = w + change
old = w
w = clip(wanted, -limit, limit)
cut = cut + int(w != wanted)
changed = changed + int(w != old)
passed = w * gain
back = w * mirrored
passed_back = back * gain_back
held = kept * waiting(t)
kept = held + m * (1 - waiting(t))
m = m * waiting(t)
"""
SYNAPSE = """
w : 1
m : 1
kept : 1
gain : 1 (constant)
gain_back : 1 (constant)
passed : 1
passed_back : 1
cut : 1
changed : 1
"""


def population_equations(neuron: Neuron, rule: LearningRule) -> tuple[str, str, str]:
    """The model of a population, the statements of a tick and the statements of a pause."""
    model, code = step(neuron, 1)
    phases = range(len(rule.schedule))
    model += "".join(f"sent_{k} : 1\ntraced_{k} : 1\n" for k in phases)
    model += "traced_pause : 1\nwas : 1\n"
    message = "fired" if isinstance(neuron, Spiking) else "q"
    pause = LOAD_SAMPLE.format(message=message)
    if isinstance(neuron, Spiking):
        model += "dr/dt = -r / tau_trace : 1\n"
        code += ADD_IMPULSE
        pause += REST_SPIKING if rule.fresh else ""
        pause += "r = r * int(r >= least)\ntraced_pause = traced_pause + int(r != was)\n"
    else:
        model += "r : 1\n"
        code += "r = sent\n"
        pause += REST_GRADED + "r = 0\n"
    code += f"now = phase_of(t)\nis_sent = int({message} != 0)\nis_traced = int(r != was)\n"
    for k in phases:
        code += f"sent_{k} = sent_{k} + int(now == {k}) * is_sent\n"
        code += f"traced_{k} = traced_{k} + int(now == {k}) * is_traced\n"
    return model, code + "was = r\n", pause + "was = r\n"


def tag_equations(rule: LearningRule) -> tuple[str, str]:
    """The counters of synapses, and the statements of a step in a window."""
    open_in = [k for k, gate in enumerate(rule.gates) if gate]
    model = "".join(f"grown_{k} : 1\n" for k in open_in)
    counts = (
        f"grown_{k} = grown_{k} + int(phase_of(t) == {k}) * int(grown != 0)\n" for k in open_in
    )
    return model, ADD_TAG + "".join(counts)


def trace_constants(rule: LearningRule, dt: Handle) -> dict[str, Handle]:
    """The namespace of the trace equations."""
    return {
        "tau_trace": time_constant(rule, dt),
        "impulse": 1.0 - rule.keep,
        "least": LEAST,
    }


def time_constant(rule: LearningRule, dt: Handle) -> Handle:
    """The trace time constant: of the nearest floats one whose decay equals `keep`, if any."""
    near, step_size = float(rule.tau * dt), float(dt)
    tried = [near]
    for end in (0.0, np.inf):
        tau = near
        for _ in range(8):
            tau = float(np.nextafter(tau, end))
            tried.append(tau)
    exact = [tau for tau in tried if float(np.exp(-step_size / tau)) == rule.keep]
    return (exact or [near])[0] * (dt / step_size)


def clock_tables(
    brian2: ModuleType, rule: LearningRule, samples: int, dt: Handle
) -> dict[str, Handle]:
    """Timed arrays over the first pause and all samples: the phase and the gates of each step.

    `phase_of` is -1 in a pause, and `waiting` is 1 in a pause without a commit.
    """
    *steps, commit = rule.episode
    free = rule.schedule[0].steps
    columns = {
        "phase_of": [-1.0, *(float(step.phase) for step in steps)],
        "factor": [commit.gate, *(step.gate for step in steps)],
        "reads_out": [0.0, *(float(t == free - 1) for t in range(len(steps)))],
    }
    timed = {
        name: brian2.TimedArray(np.append(np.tile(column, samples), column[0]), dt=dt)
        for name, column in columns.items()
    }
    waiting = np.append(1.0, ~rule.commits(samples))
    timed["waiting"] = brian2.TimedArray(waiting, dt=rule.steps * dt)
    schedule = (PAUSE, *rule.schedule) * samples
    return timed | tables(brian2, (*schedule, PAUSE), dt)
