"""The equations of a neuron in continuous time: one description, which every rendering reads.

With the drive d of a neuron, the sum of what it receives in units of the rate,

    d = bias + current + g + beta g_beta + beta (target - own clip(slow, 0, 1))
    dslow/dt = (d - slow) / tau_d
    dg/dt = -g / tau_s                       on a spike that arrives: g = g + w / (rmax tau_s)

the neuron `lif` is, with rest = theta / 2 and eta a standard normal number for each neuron and dt,

    dv/dt = rmax gain(d) - (v - rest) / tau_m + noise theta sqrt(2 rmax / dt) eta
    spike   v >= theta, outside of the refractory period; then v = v - theta, or v = 0
    limits  v = min(max(v, floor), ceiling)

Voltages of `lif` have no unit. The models of `neuron_models` receive gain(d) as a current. `gain`
is the inverse of the neuron's own f-I curve with its leak and its noise (`gain_curve`), so that a
constant drive in 0..1 makes it fire at rmax d; without leak and noise that of `lif` is the
identity. A spike adds w in total for any tau_s, and forward Euler preserves these sums for any dt.

Synapses that are conductances g_e and g_i pull towards Ee and Ei. Their weight holds at the mean
voltage of the neuron at its own slow drive, which `mean_voltage` reads from the same curve.

A Poisson neuron fires in each dt with the probability rmax dt clip(drive, 0, 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.biology.neuron_models import MembraneModel, Parameter
from neuro_eqprop.simulators.biology.settings import Biology, Refractory
from neuro_eqprop.spiking.ir import Reset, Spiking

WHITE = "sqrt(2 * rmax / dt) * eta"
"""White noise from a standard normal number eta that a neuron gets in every dt."""


@dataclass(frozen=True, slots=True)
class Derivative:
    """A differential equation: the variable, its derivative, its unit, whether it is held."""

    variable: str
    expression: str
    unit: str = "1"
    held: bool = False
    """Whether it stands still in the refractory period."""


@dataclass(frozen=True, slots=True, eq=False)
class GainCurve:
    """What a neuron needs to fire at a drive, and its mean voltage there, as tables."""

    drives: Array
    """Increasing, from -1 to 1."""
    inputs: Array
    """The constant input, as a drive of `lif` or a current in SI units, that gives each drive."""
    voltages: Array
    """The mean voltage at each drive, in volts or thresholds."""


@dataclass(frozen=True, slots=True)
class Equations:
    """The equations of a neuron, in the syntax that Brian2 and Python share.

    The inputs `outside`, `pull` and `own` are constants of each neuron, `beta` is shared.
    """

    derivatives: tuple[Derivative, ...]
    definitions: tuple[tuple[str, str, str], ...]
    """Variables that are expressions of others, in the order of their evaluation: with unit."""
    threshold: str
    reset: tuple[str, ...]
    limits: str
    """A statement after the reset, in every dt; may be empty."""
    initial: tuple[tuple[str, str], ...]
    """Initial values other than zero, in the order of their evaluation."""
    constants: Mapping[str, Parameter]
    curve: GainCurve | None
    """Tables of the functions `gain` and `mean_voltage`; None if no equation uses them."""
    noisy: bool


def describe(
    biology: Biology,
    neuron: Spiking,
    curve: GainCurve | None,
    *,
    gated: bool = False,
    nudged: bool = False,
    white: str = WHITE,
) -> Equations:
    """The equations of the neurons of a network.

    `curve` is None for a neuron that receives its drive unchanged. `gated` if synapses with a gain
    of beta arrive at some neurons, `nudged` if some are nudged by their own drive.
    """
    model = biology.model
    conductances = model is not None and model.conductances and curve is not None
    synapses = [("g", ""), *([("g_beta", "beta * ")] if gated else [])]
    nudge = "beta * (pull - own * clip(slow, 0, 1))" if nudged else "beta * pull"
    drive = " + ".join(["outside", nudge, *(f"{factor}{name}" for name, factor in synapses)])
    derivatives, definitions = list[Derivative](), list[tuple[str, str, str]]()
    given = "drive"
    for name, factor in synapses:
        if not conductances:
            derivatives.append(Derivative(name, f"-{name} / tau_s"))
            continue
        derivatives += [Derivative(f"{name}{s}", f"-{name}{s} / tau_s") for s in ("_e", "_i")]
        definitions.append((name, f"{name}_e - {name}_i", "1"))
        given += (
            f" + {factor}({name}_e * ((Ee - v) / (Ee - middle) - 1)"
            f" - {name}_i * ((v - Ei) / (middle - Ei) - 1))"
        )
    definitions.append(("drive", drive, "1"))
    if conductances:
        middle = "unit_voltage * mean_voltage(clip(slow, 0, 1))"
        definitions.append(("middle", middle, "V"))
    if nudged or conductances:
        derivatives.append(Derivative("slow", "(drive - slow) / tau_d"))
    derivatives.append(Derivative("received", "rmax * drive"))
    if curve is not None:
        given = f"gain({given})"
    described = lif if model is None else membrane
    return described(
        biology, neuron, curve, given=given, parts=(derivatives, definitions), white=white
    )


Parts = tuple[list[Derivative], list[tuple[str, str, str]]]


def lif(
    biology: Biology,
    neuron: Spiking,
    curve: GainCurve | None,
    *,
    given: str,
    parts: Parts,
    white: str,
) -> Equations:
    """The neuron that integrates its drive in units of its threshold."""
    derivatives, definitions = parts
    constants = shared_constants(biology) | {
        "theta": Parameter(neuron.threshold, "1"),
        "lowest": Parameter(neuron.floor, "1"),
        "highest": Parameter(neuron.ceiling, "1"),
        "noise": Parameter(biology.noise, "1"),
    }
    leak = noise = ""
    if biology.tau_m is not None:
        leak = " - (v - rest) / tau_m"
        constants["tau_m"] = Parameter(biology.tau_m, "s")
        constants["rest"] = Parameter(neuron.threshold / 2, "1")
    if biology.noise:
        noise = f" + noise * theta * {white}"
    held = biology.refractory_kind is Refractory.HOLD
    voltage = Derivative("v", f"rmax * {given}{leak}{noise}", held=held)
    after = "v - theta" if neuron.reset is Reset.SUBTRACT else "0"
    return Equations(
        (voltage, *derivatives),
        tuple(definitions),
        "v >= theta",
        (f"v = {after}", "sent = sent + 1"),
        "v = clip(v, lowest, highest)",
        (("v", "theta / 2"),),
        constants,
        curve,
        bool(biology.noise),
    )


def membrane(
    biology: Biology,
    neuron: Spiking,
    curve: GainCurve | None,
    *,
    given: str,
    parts: Parts,
    white: str,
) -> Equations:
    """A neuron model with a membrane in volts, which receives a current."""
    model, (derivatives, definitions) = biology.model, parts
    assert model is not None
    low, high = potentials(model)
    constants = shared_constants(biology) | {
        **model.parameters,
        "mV": Parameter(1e-3, "V"),
        "ms": Parameter(1e-3, "s"),
        "span": Parameter(high - low, "V"),
        "noise": Parameter(biology.noise, "1"),
        "unit_current": Parameter(1.0, model.current),
        "unit_voltage": Parameter(1.0, "V"),
    }
    noise = f" + noise * span * {white}" if biology.noise else ""
    return Equations(
        (
            Derivative("v", f"{model.membrane}{noise}", "V", held=True),
            *(Derivative(name, expression, unit) for name, expression, unit in model.others),
            *derivatives,
        ),
        (*definitions, ("I", f"unit_current * {given}", model.current)),
        model.threshold,
        (*model.reset.splitlines(), "sent = sent + 1"),
        "",
        (("v", model.start), *model.resting.items()),
        constants,
        curve,
        bool(biology.noise),
    )


def shared_constants(biology: Biology) -> dict[str, Parameter]:
    """Constants of every neuron."""
    times = {"tau_s": biology.tau_s, "tau_d": biology.tau_d}
    named = {name: Parameter(value, "s") for name, value in times.items()}
    return named | {"rmax": Parameter(biology.rmax, "Hz")}


def potentials(model: MembraneModel) -> tuple[float, float]:
    """Voltages that count as zero and as one in recordings, in volts."""
    named = model.parameters
    low, high = (
        named[text].value if text in named else float(text.split("*")[0]) * 1e-3
        for text in (model.floor, model.top)
    )
    return low, high


def recorded_range(biology: Biology) -> tuple[float, float]:
    """Voltages that count as zero and as one in recordings of this biology."""
    return (0.0, 1.0) if biology.model is None else potentials(biology.model)
