"""Export of a spiking network as a Lava process that users connect themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import frexp, log2
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.learner import LavaLearner
from neuro_eqprop.simulators.lava.native.plan import (
    INPUT_EXP,
    SPARSE_BELOW,
    StockEdge,
    StockLayer,
    StockPlan,
    largest_drive,
    message_threshold,
    scale_of,
)
from neuro_eqprop.simulators.lava.ranges import exact_ranges, stock_ranges
from neuro_eqprop.simulators.lava.setup import prepare_import
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Spiking, SpikingNetwork
from neuro_eqprop.spiking.lowered import LoweredNetwork, lower_network
from neuro_eqprop.spiking.make_plastic import (
    ALWAYS,
    PlasticityConfig,
    check_code,
    make_plastic,
    training_stimulus,
)
from neuro_eqprop.spiking.plasticity import LearningRule, TrainingSamples, engine_for

if TYPE_CHECKING:
    from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork, ExactPlan
    from neuro_eqprop.simulators.lava.native.learning.network import LearningNetwork
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

NEURONS = ("exact", "stock")
FINEST_INPUT = 30
"""Most fractional bits of the input in fixed point."""
RATE, THETA, TAU, LIMIT = 0.05, 2.0**-8, 8.0, 4.0
INTEGER_LIMIT = 1.0
"""Learning rate, theta, trace time constant and weight limits: the defaults of `learn_on_chip`."""


def lava_network(
    spiking: LoweredNetwork,
    *,
    neurons: str = "exact",
    reset_interval: int | None = None,
    threshold: float | None = None,
    inputs: npt.ArrayLike | None = None,
    source: ExactNetwork | StockNetwork | None = None,
    name: str | None = None,
) -> ExactNetwork | StockNetwork:
    """The model as one Lava process, see `SpikingModel.to_lava`."""
    if neurons not in NEURONS:
        raise UnknownNameError("kind of neurons", neurons, NEURONS)
    if reset_interval is not None and (reset_interval < 1 or reset_interval != int(reset_interval)):
        raise ValueError(
            f"reset_interval is the number of steps of a sample, an integer above zero, not "
            f"{reset_interval}"
        )
    if threshold is not None and not threshold > 0:
        raise ValueError(f"threshold must be above zero, not {threshold}")
    graded = spiking.network[spiking.network.output].neuron.graded
    if threshold is not None and not (neurons == "stock" and graded):
        raise ValueError("threshold applies only to neurons='stock' with code 'graded'")
    prepare_import()
    if spiking.input.name != "current":
        raise BackendError(
            f"a Lava process takes its input through port `inp`, not as {spiking.input.name!r} "
            f"spikes; use to_spiking(input='current')"
        )
    rows = None if inputs is None else spiking.samples(inputs)
    if neurons == "stock":
        plain = spiking
        if spiking.bits is not None or spiking.nudged:
            plain = lower_network(spiking.rate, spiking.exact, code=spiking.coding.code)
        stock = stock_plan(
            plain.network,
            plain.input_weights,
            bits=spiking.bits,
            reset_interval=reset_interval,
            threshold=threshold,
            inputs=rows,
        )
        from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

        if source is not None and source.graded != graded:
            raise BackendError(
                "stock neurons of code 'graded' sum changes, and those of code 'rate' take spikes; "
                "the source sends the other: use neurons='exact'"
            )
        unit = None if source is None else -round(log2(source.out_scale))
        net = StockNetwork(replace(stock, input_exp=unit), name)
        net.ranges_of = stock_ranges
        return net
    from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork

    exact = ExactNetwork(exact_plan(spiking, reset_interval, rows, source), name)
    exact.ranges_of = exact_ranges
    return exact


def exact_plan(
    spiking: LoweredNetwork,
    reset_interval: int | None,
    inputs: Array | None,
    source: ExactNetwork | StockNetwork | None,
) -> ExactPlan:
    """The network for exact processes, with an input port for these samples or this source."""
    from neuro_eqprop.simulators.lava.native.exact.network import ExactPlan, InputPort

    if source is not None:
        port = InputPort(source.out_scale, changes=source.graded)
    else:
        port = InputPort(1.0 if spiking.network.fixed is None else 2.0 ** -input_exponent(inputs))
    network, coding = spiking.network, spiking.coding
    try:
        return ExactPlan(
            network, spiking.input_weights, coding.grid, reset_interval, port, coding.tail
        )
    except ValueError as error:
        raise BackendError(str(error)) from error


def input_exponent(inputs: Array | None) -> int:
    """k, where `inp` takes multiples of 2^-k: the finest for which samples fit 32-bit sources."""
    if inputs is None:
        return INPUT_EXP
    most = float(np.abs(inputs).max(initial=0.0))
    return min(FINEST_INPUT, 30 - int(frexp(most)[1])) if most else FINEST_INPUT


def learning_network(
    spiking: LoweredNetwork,
    make_model: Callable[[Mapping[str, Array]], Any],
    *,
    beta: float | None = None,
    rate: float | npt.ArrayLike = RATE,
    phases: int | Schedule | None = None,
    engine: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> LearningNetwork:
    """The model as one Lava process that learns, see `SpikingModel.to_lava`."""
    prepare_import()
    if spiking.bits is not None:
        raise BackendError(
            "a Lava process learns in floating point, or with the 9-bit weights of Lava's engine: "
            "leave out bits, and use engine=True for integers"
        )
    code = spiking.coding.code
    check_code(code)
    assert code.learning is not None
    if phases is None or isinstance(phases, int):
        assert beta is not None, "the default is that of the model"
        lengths = code.learning.lengths(phases)
        phases = lengths.schedule(beta=beta, centered=True)
    elif beta is not None:
        raise ValueError("phases that are given one by one have their own beta; leave out beta")
    coding = replace(spiking.coding, theta=THETA)
    rates = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    rule, limit = LearningRule(phases, TAU), LIMIT
    if engine:
        limit, first = INTEGER_LIMIT, float(rates[0])
        made = engine_for(first, gap=rule.gap, window=rule.window, scale=limit / 256, seed=seed)
        rule = replace(rule, numbers=made)
    how = PlasticityConfig(coding, rule, limit, spiking.network.dt)
    plastic = make_plastic(spiking.rate, spiking.exact, how)
    size, classes = spiking.rate.input.size, spiking.rate.output.size
    nothing = training_stimulus(spiking.rate, np.zeros((1, size)), np.zeros((1, classes)), coding)
    LavaLearner().check(plastic, TrainingSamples(nothing, rates[:1]))
    from neuro_eqprop.simulators.lava.native.learning.network import (
        LearningNetwork,
        LearningPlan,
        RateModel,
    )

    entry = next(iter(nothing.current))
    model = RateModel(entry, coding.grid, spiking.exact, make_model, ALWAYS, spiking.encode_target)
    return LearningNetwork(LearningPlan(plastic, tuple(rates), model), name)


def stock_plan(
    network: SpikingNetwork,
    feeds: Mapping[str, Array],
    *,
    bits: int | None = None,
    reset_interval: int | None = None,
    threshold: float | None = None,
    inputs: Array | None = None,
) -> StockPlan:
    """Layers and weights for stock processes.

    Parameters
    ----------
    network : SpikingNetwork
        In floating point and without the synapses of a nudge.
    feeds : mapping of str to array
        Input weights (units, features) by population.
    bits : int, optional
        8 for fixed point; None for floating point.
    reset_interval : int, optional
        Steps of a sample, after which all states are reset to zero.
    threshold : float, optional
        Least change of a rate for which a graded unit sends a message; the default is 1/256 or
        less, depending on the weights.
    inputs : array (samples, features), optional
        Samples whose drives the states hold in fixed point; the default are values in 0..1.

    Raises
    ------
    BackendError
        If stock processes cannot run the network; the message gives the reason.
    """
    check_stock(network)
    graded = isinstance(network.populations[0].neuron, Graded)
    layers = []
    for population in network.populations:
        neuron = population.neuron
        low, high = 0.0, 1.0
        if isinstance(neuron, Graded):
            low, high = neuron.activation.low, neuron.activation.high
        layers.append(StockLayer(population.name, population.bias, low, high))
    entry = "input" if "input" not in {p.name for p in network.populations} else "input data"
    edges = [StockEdge(entry, target, sparse(weight)) for target, weight in feeds.items()]
    edges += [StockEdge(p.source, p.target, sparse(p.weight)) for p in network.projections]
    features = max((weight.shape[1] for weight in feeds.values()), default=0)
    try:
        plan = StockPlan(
            features,
            tuple(layers),
            tuple(edges),
            network.output,
            graded,
            bits,
            reset_interval,
            message_threshold(edges, entry) if threshold is None else threshold,
            input=entry,
        )
        if inputs is not None:
            plan = replace(plan, largest_drive=largest_drive(plan, inputs))
        scale_of(plan)
        return plan
    except ValueError as error:
        raise BackendError(f"stock Lava processes cannot run this network: {error}") from error


def sparse(weight: Array) -> Array | csr_matrix:
    """The matrix, in CSR format if most of it is zero."""
    few = np.count_nonzero(weight) < SPARSE_BELOW * weight.size
    return csr_matrix(weight) if few else weight


def check_stock(network: SpikingNetwork) -> None:
    """Raise BackendError if stock processes cannot run the network."""
    reason = stock_limit(network)
    if reason is not None:
        raise BackendError(
            f"stock Lava processes cannot run this network: {reason}; neurons='exact' can"
        )


def stock_limit(network: SpikingNetwork) -> str | None:
    """Why stock processes cannot run a network, or None if they can."""
    if network.fixed is not None:
        return "it is in fixed point already; lower it in floating point and pass bits=8"
    if len({type(p.neuron) for p in network.populations}) > 1:
        return "it mixes graded and spiking populations"
    if any(p.gain is Gain.BETA for p in network.projections):
        return (
            "its nudge changes the gain of synapses between phases, which stock neurons cannot do"
        )
    if any(p.delay > 1 for p in network.projections):
        return "a connection has a delay above one step"
    limits = (neuron_limit(population) for population in network.populations)
    return next((limit for limit in limits if limit is not None), None)


def neuron_limit(population: Population) -> str | None:
    """Why no stock process can run the neurons of a population, or None."""
    name, neuron = population.name, population.neuron
    if isinstance(neuron, Graded):
        rate = neuron.activation
        other = f"population {name!r} has activation {rate.name}; SigmaDelta has relu"
        return None if rate.piecewise_linear else other
    if neuron.follow is not None:
        return f"population {name!r} tracks a rate; use code 'rate' or 'graded'"
    assert isinstance(neuron, Spiking)
    if (neuron.current_decay, neuron.voltage_decay, neuron.threshold) != (1.0, 0.0, 1.0):
        return f"population {name!r} leaks or has a threshold other than 1"
    if neuron.resting_voltage != 1 / 2:
        return f"population {name!r} does not start at half its threshold"
    return None
