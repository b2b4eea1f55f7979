"""The step of a population as Brian2 statements, for NumPy, Cython and C++."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.simulators.brian2.setup import Handle
from neuro_eqprop.spiking.ir import Graded, Neuron, Reset, Spiking

MODEL = """
a_one : 1
a_beta : 1
outside : 1
pull : 1
drive : 1
"""
SUMS = """
messages : 1
sum_firing : 1
sum_drive : 1
"""

# Brian2 may reorder the terms of a sum, so a statement has at most one addition.
FEED = """
given = outside + beta * pull
"""

SPIKING = """
a = a_one + beta * a_beta
u = keep_current * u + a
drive = u + given
v = keep_voltage * v + drive
fired = int(v >= threshold)
v = {reset}
v = clip(v, lowest, highest)
a_one = 0
a_beta = 0
"""

GRADED = """
g_one = g_one + a_one
g_beta = g_beta + a_beta
gathered = g_one + beta * g_beta
drive = gathered + given
gap = {activation} - x
x = x + damping * gap
{shift}
change = x - sent
ratio = change / theta
q = theta * round_even(ratio)
sent = sent + q
a_one = 0
a_beta = 0
"""

MEASURE = """
messages = messages * within_phase(t) + int({message} != 0)
sum_firing = sum_firing * within_window(t) + {held}
sum_drive = sum_drive * within_window(t) + drive
"""


def step(neuron: Neuron, longest: int, *, scheduled: bool = True) -> tuple[str, str]:
    """The variables of a population and the statements of its step.

    With a schedule, beta is a timed array, and messages, firing and drive are summed in each phase.
    Without one, beta is a variable. Brian2 reads a graded message when it arrives, so q_k stores
    the message of k steps ago for delays of up to `longest` steps.
    """
    if isinstance(neuron, Spiking):
        reset = "v - threshold * fired" if neuron.reset is Reset.SUBTRACT else "v * (1 - fired)"
        code = SPIKING.format(reset=reset)
        measure = {"message": "fired", "held": "fired"}
        names = ["u", "v", "fired"]
    else:
        assert isinstance(neuron, Graded)
        rate = neuron.activation
        activation = (
            "clip(drive, lowest, highest)"
            if rate.piecewise_linear
            else f"{function_name(rate)}(drive)"
        )
        past = ["q", *(f"q_{k}" for k in range(1, longest))]
        shift = "\n".join(f"{past[k]} = {past[k - 1]}" for k in range(longest - 1, 0, -1))
        code = GRADED.format(activation=activation, shift=shift)
        measure = {"message": "q", "held": "sent"}
        names = ["g_one", "g_beta", "x", "sent", *past]
    model = MODEL + "".join(f"{name} : 1\n" for name in names)
    if not scheduled:
        return model + "beta : 1 (shared)\n", FEED + code
    return model + SUMS, "beta = beta_of(t)" + FEED + code + MEASURE.format(**measure)


def constants(brian2: ModuleType, neuron: Neuron) -> dict[str, Handle]:
    """Constants and functions that the statements of a neuron use."""
    if isinstance(neuron, Spiking):
        return {
            "keep_current": 1 - neuron.current_decay,
            "keep_voltage": 1 - neuron.voltage_decay,
            "threshold": neuron.threshold,
            "lowest": neuron.floor,
            "highest": neuron.ceiling,
        }
    assert isinstance(neuron, Graded)
    return {
        function_name(neuron.activation): function(
            brian2, function_name(neuron.activation), neuron.activation.value
        ),
        "round_even": function(brian2, "round_even", np.rint),
        "theta": neuron.theta,
        "damping": neuron.damping,
        "lowest": neuron.activation.low,
        "highest": neuron.activation.high,
    }


# Brian2 compiles with -ffast-math, which may reorder the sums of tanh.
CPP = {
    "exact_tanh": """
__attribute__((optimize("no-fast-math", "fp-contract=off")))
static double exact_tanh(const double u)
{
    const double doubled = 2.0 * fmin(fabs(u), 20.0);
    const double k = rint(doubled * 1.4426950408889634);
    const double r = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double total = 1.0;
    for (int n = 14; n > 0; n--) total = 1.0 + r * total / n;
    const double size = 1.0 - 2.0 / (ldexp(total, (int) k) + 1.0);
    return u > 0.0 ? size : u < 0.0 ? -size : 0.0;
}
""",
    "round_even": """
static inline double round_even(const double ratio) { return rint(ratio); }
""",
}
CYTHON = {
    "exact_tanh": """
cimport libc.math as exact_math
cdef double exact_tanh(double u):
    cdef double doubled = 2.0 * exact_math.fmin(exact_math.fabs(u), 20.0)
    cdef double k = exact_math.rint(doubled * 1.4426950408889634)
    cdef double r = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    cdef double total = 1.0
    cdef int n
    for n in range(14, 0, -1):
        total = 1.0 + r * total / n
    cdef double size = 1.0 - 2.0 / (exact_math.ldexp(total, <int> k) + 1.0)
    return size if u > 0.0 else (-size if u < 0.0 else 0.0)
""",
    "round_even": """
cimport libc.math as even_math
cdef double round_even(double ratio):
    return even_math.rint(ratio)
""",
}


def function(brian2: ModuleType, name: str, python: Callable[[Array], Array]) -> Handle:
    """A function of one number in NumPy, and in C++ and Cython if it is known, bit-identical."""
    made = brian2.Function(python, arg_units=[1], return_unit=1)
    for target, known in (("cpp", CPP), ("cython", CYTHON)):
        if name in known:
            made.implementations.add_implementation(target, known[name], name=name)
    return made


def function_name(rate: Activation) -> str:
    """The name of an activation in statements."""
    return f"exact_{rate.curve.name}"


def tables(brian2: ModuleType, schedule: Schedule, dt: Handle) -> dict[str, Handle]:
    """Timed arrays of a schedule: beta, zeros where counts and sums restart, ends of phases."""
    columns: dict[str, list[Array]] = {
        "beta_of": [],
        "within_phase": [],
        "within_window": [],
        "last_of_phase": [],
    }
    for phase in schedule:
        ticks = np.arange(phase.steps)
        columns["beta_of"].append(np.full(phase.steps, phase.beta))
        columns["within_phase"].append(1.0 * (ticks != 0))
        columns["within_window"].append(1.0 * (ticks != phase.steps - phase.window))
        columns["last_of_phase"].append(1.0 * (ticks == phase.steps - 1))
    return {
        name: brian2.TimedArray(np.concatenate(column), dt=dt) for name, column in columns.items()
    }
