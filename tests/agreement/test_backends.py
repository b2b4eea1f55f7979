"""Every backend against the reference, and the suite itself against backends with one fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, Bits, Shape
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import EVERYTHING, Feature, Result, Support
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.reference import simulator
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.stepped_network import SteppedNetwork
from neuro_eqprop.simulators.testing import CASES, check_backend, check_case, draw_case, draw_cases
from neuro_eqprop.simulators.testing.case import Case, run_case
from neuro_eqprop.simulators.testing.random_networks import GRID, active, ties
from neuro_eqprop.spiking import arithmetic
from neuro_eqprop.spiking.arithmetic import Numbers
from neuro_eqprop.spiking.ir import Gain, Population, Reset, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.kinds import GradedNeurons, Neurons, SpikingNeurons, TrackingNeurons

NAMED = {case.name: case for case in CASES}
NETWORKS = 20
LACKING = {
    "lava": frozenset({Feature.FOLLOW}),
    "lava-fused": frozenset({Feature.FOLLOW}),
    "brian2": frozenset({Feature.FOLLOW, Feature.FIXED_POINT}),
    "snntorch": frozenset({Feature.FOLLOW, Feature.FIXED_POINT}),
}


EVERY = {case.name: case for case in (*CASES, *draw_cases(0, NETWORKS))}


@pytest.mark.drawn(12, by="name")
@pytest.mark.parametrize("case", EVERY)
@pytest.mark.parametrize(
    "name",
    [
        "emulator",
        pytest.param("brian2", marks=pytest.mark.brian2),
        pytest.param("snntorch", marks=pytest.mark.snntorch),
        pytest.param("lava", marks=pytest.mark.lava),
        pytest.param("lava-fused", marks=pytest.mark.lava),
    ],
)
def test_backend_equals_the_reference(name: str, case: str) -> None:
    backend, lacking = load_backend(name), EVERY[case].needs & LACKING.get(name, frozenset())
    assert {need for need in EVERY[case].needs if need not in backend.support} == lacking
    if not lacking:
        check_case(backend, EVERY[case])


def test_all_cases_are_checked_or_skipped_with_a_reason() -> None:
    without = Support({Feature.FOLLOW: "it tracks no rate"})
    report = check_backend(Faulty(support=without), seed=0, networks=NETWORKS)
    lacking = {name for name, case in EVERY.items() if Feature.FOLLOW in case.needs}
    assert lacking
    assert report.backend == "faulty"
    assert report.skipped == dict.fromkeys(lacking, "it tracks no rate")
    assert set(report.passed) == set(EVERY) - lacking


# Backends with a fault

Replaced: TypeAlias = tuple[Any, str, Callable[..., Any]]
"""A class or module, the name of a function in it, and what replaces that function."""


@dataclass
class Faulty:
    """The reference with parts of it replaced, and with changed input and output."""

    parts: Sequence[Replaced] = ()
    network: Callable[[SpikingNetwork], SpikingNetwork] = lambda network: network
    schedule: Callable[[Schedule], Schedule] = lambda schedule: schedule
    recording: Callable[[int, Recording], Recording | None] = lambda _, recording: recording
    result: Callable[[Result], Result] = lambda result: result
    name: str = "faulty"
    support: Support = EVERYTHING

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        changed = Changed(sink, self.recording)
        with ExitStack() as stack:
            for where, name, part in self.parts:
                stack.enter_context(patch.object(where, name, part))
            result = simulator.Reference().run(
                self.network(network),
                stimulus,
                self.schedule(schedule),
                record=record,
                sink=changed,
            )
        return self.result(result)


@dataclass
class Changed:
    """A sink that changes or keeps what should pass through it."""

    sink: Sink
    change: Callable[[int, Recording], Recording | None]

    def sample(self, index: int, recording: Recording) -> None:
        changed = self.change(index, recording)
        if changed is not None:
            self.sink.sample(index, changed)


def spiking_with(
    *,
    fires: Callable[[Array, float], Bits] = lambda v, threshold: v >= threshold,
    limits_first: bool = False,
    floor: bool = True,
    ceiling: bool = True,
    dtype: type[np.floating[Any]] = np.float64,
) -> Replaced:
    """The step of a spiking population in floating point with a fault."""

    def step(self: SpikingNeurons, one: Array, by_beta: Array, beta: float, outside: Array) -> Bits:
        if self.arithmetic.fixed:
            return advance_spiking(self, one, by_beta, beta, outside)
        neuron = self.neuron
        low = neuron.floor if floor else -np.inf
        high = neuron.ceiling if ceiling else np.inf
        self.current = (1 - neuron.current_decay) * self.current + (one + beta * by_beta)
        self.drive = self.current + outside
        v = (1 - neuron.voltage_decay) * self.held + self.drive
        self.spikes = fires(v, neuron.threshold)
        if limits_first:
            v = np.clip(v, low, high)
        after = v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0
        v = np.where(self.spikes, after, v)
        self.held = (v if limits_first else np.clip(v, low, high)).astype(dtype).astype(float)
        return self.spikes

    return (SpikingNeurons, "advance", step)


def away_from_zero(
    self: GradedNeurons, one: Array, by_beta: Array, beta: float, outside: Array
) -> Array:
    """The step of a graded population that rounds halves away from zero."""
    before = self.sent
    message = advance_graded(self, one, by_beta, beta, outside)
    if self.arithmetic.fixed:
        return message
    ratio = (self.held - before) / self.theta
    message = np.asarray(self.theta * np.sign(ratio) * np.floor(np.abs(ratio) + 0.5))
    self.sent = before + message
    return message


def rest_elsewhere(self: SpikingNeurons, shape: Shape) -> None:
    """Samples after the first do not start from rest."""
    rest(self, shape)
    if len(shape) > 1 and not self.arithmetic.fixed:
        self.held[1:] = 0.0


advance_spiking, advance_graded = SpikingNeurons.advance, GradedNeurons.advance
advance_tracking, rest = TrackingNeurons.advance, SpikingNeurons.rest
step_all = SteppedNetwork.step


def advance_by(
    update: Callable[[Population, Neurons, Given], Numbers], *, at_firing: bool = False
) -> Replaced:
    """A step of all populations by `update`; the gain may be that of the step of the firing."""
    betas: list[float] = []

    def step(self: SteppedNetwork, beta: float) -> None:
        network, stimulus, past = self.network, self.stimulus, self.past
        if network.fixed is not None:
            step_all(self, beta)
            return
        if not past:
            betas.clear()
        arriving = {
            (p.name, gain): np.zeros((stimulus.samples, p.size))
            for p, gain in product(network.populations, Gain)
        }
        for p in (p for p in network.projections if p.delay <= len(past)):
            sent = past[-p.delay][p.source] @ p.weight.T
            if at_firing and p.gain is Gain.BETA:
                arriving[p.target, Gain.ONE] += betas[-p.delay] * sent
            else:
                arriving[p.target, p.gain] += sent
        for q in network.populations:
            nothing = np.zeros((stimulus.samples, q.size))
            current = stimulus.current.get(q.name, nothing)
            pull = beta * stimulus.pull.get(q.name, nothing)
            one, by_beta = arriving[q.name, Gain.ONE], arriving[q.name, Gain.BETA]
            given = Given(one, by_beta, current, pull, beta)
            self.messages[q.name] = update(q, self.neurons[q.name], given)
        past.append({name: sent.astype(float) for name, sent in self.messages.items()})
        betas.append(beta)

    return (SteppedNetwork, "step", step)


@dataclass
class Given:
    """What a population is given in a step; `pull` is scaled by beta already."""

    one: Array
    by_beta: Array
    current: Array
    pull: Array
    beta: float


def in_order(population: Population, neurons: Neurons, given: Given) -> Numbers:
    """The step as it should be."""
    outside = population.bias + given.current + given.pull
    return neurons.advance(given.one, given.by_beta, given.beta, outside)


def regrouped(brackets: str) -> Callable[[Population, Neurons, Given], Numbers]:
    """The step with the brackets of one of its sums set elsewhere."""

    def update(population: Population, neurons: Neurons, given: Given) -> Numbers:
        bias, beta = population.bias, given.beta
        outside = bias + given.current + given.pull
        if brackets == "outside":
            outside = bias + (given.current + given.pull)
        if isinstance(neurons, GradedNeurons):
            one, by_beta = neurons.sum_one + given.one, neurons.sum_beta + given.by_beta
            total = (one + beta * by_beta) + outside
            if brackets == "drive":
                total = ((one + beta * by_beta) + (bias + given.current)) + given.pull
            if brackets == "arriving":
                total = one + (beta * by_beta + outside)
            zero = np.zeros_like(total)
            neurons.sum_one, neurons.sum_beta = zero, zero
            message = neurons.advance(total, zero, 0.0, zero)
            neurons.sum_one, neurons.sum_beta = one, by_beta
            return message
        assert isinstance(neurons, SpikingNeurons)
        if neurons.neuron.follow is not None:
            return neurons.advance(given.one, given.by_beta, beta, outside)
        kept, keep = neurons.keep_current, neurons.keep_voltage
        u = kept * neurons.current + (given.one + beta * given.by_beta)
        if brackets == "arriving":
            u = (kept * neurons.current + given.one) + beta * given.by_beta
        drive = u + outside
        if brackets == "drive":
            drive = (u + (bias + given.current)) + given.pull
        v = keep * neurons.held + drive
        if brackets == "voltage":
            v = (keep * neurons.held + u) + outside
        zero = np.zeros_like(v)
        neurons.keep_current = neurons.keep_voltage = 0.0
        message = neurons.advance(v, zero, 0.0, zero)
        neurons.keep_current, neurons.keep_voltage = kept, keep
        neurons.current, neurons.drive = u, drive
        return message

    return update


UNWRAPPED = Faulty([(arithmetic, "wrap", lambda x: x)])
UNSATURATED = Faulty([(arithmetic, "saturate", lambda x: x)])
GAIN_AT_FIRING = Faulty([advance_by(in_order, at_firing=True)])


def undelayed(network: SpikingNetwork) -> SpikingNetwork:
    return replace(network, projections=tuple(replace(p, delay=1) for p in network.projections))


def one_per_pair(network: SpikingNetwork) -> SpikingNetwork:
    return replace(network, projections=tuple({p.name: p for p in network.projections}.values()))


def no_gain(network: SpikingNetwork) -> SpikingNetwork:
    ones = tuple(replace(p, gain=Gain.ONE) for p in network.projections)
    return replace(network, projections=ones)


def one_spike_flipped(index: int, recording: Recording) -> Recording:
    if index != 1 or not recording.spikes:
        return recording
    name = max(recording.spikes)
    raster = recording.spikes[name].copy()
    raster[3, -1] = 1.0 - raster[3, -1]
    return replace(recording, spikes={**recording.spikes, name: raster})


def longer_windows(schedule: Schedule) -> Schedule:
    return tuple(replace(phase, window=phase.steps) for phase in schedule)


def one_message_more(result: Result) -> Result:
    messages = {name: array.copy() for name, array in result.messages.items()}
    messages[next(iter(messages))][-1, -1, -1] += 1
    return replace(result, messages=messages)


FAULTS: dict[str, tuple[Faulty, str]] = {
    "one spike flipped": (Faulty(recording=one_spike_flipped), "reset by subtraction"),
    "limits before the reset": (
        Faulty([spiking_with(limits_first=True)]),
        "ceiling",
    ),
    "delays ignored": (Faulty(network=undelayed), "two delays into one target"),
    "gain read at firing": (GAIN_AT_FIRING, "gain read on arrival"),
    "late gain read at firing": (
        GAIN_AT_FIRING,
        "gain read on late arrival",
    ),
    "graded gain read at firing": (GAIN_AT_FIRING, "graded gain and delay"),
    "gain ignored": (Faulty(network=no_gain), "nudge"),
    "threshold to be exceeded": (
        Faulty([spiking_with(fires=lambda v, threshold: v > threshold)]),
        "tie at the threshold",
    ),
    "leaky threshold to be exceeded": (
        Faulty([spiking_with(fires=lambda v, threshold: v > threshold)]),
        "tie of a leaky voltage",
    ),
    "no floor": (Faulty([spiking_with(floor=False)]), "floor"),
    "no ceiling": (Faulty([spiking_with(ceiling=False)]), "ceiling"),
    "single precision": (Faulty([spiking_with(dtype=np.float32)]), "leaky decays"),
    **{
        f"other brackets in {brackets}, {kind}": (
            Faulty([advance_by(regrouped(brackets))]),
            f"order of additions, {kind}",
        )
        for brackets in ("arriving", "outside", "drive", "voltage")
        for kind in ("spikes", "messages")
        if (brackets, kind) != ("voltage", "messages")
    },
    "halves rounded away": (Faulty([(GradedNeurons, "advance", away_from_zero)]), "ties in round"),
    "samples run on": (
        Faulty([(SpikingNeurons, "rest", rest_elsewhere)]),
        "samples start from rest",
    ),
    "one projection per pair": (
        Faulty(network=one_per_pair),
        "several projections between two populations",
    ),
    "wrong windows": (Faulty(schedule=longer_windows), "nudge"),
    "wrong counts": (Faulty(result=one_message_more), "nothing recorded"),
    "values that are not numbers": (
        Faulty(result=lambda r: replace(r, drive={k: v * np.nan for k, v in r.drive.items()})),
        "one neuron",
    ),
    "products cut downwards": (
        Faulty([(arithmetic, "scale", lambda x, part: (x * part) >> 12)]),
        "leaky decays, in fixed point",
    ),
    "halves rounded up": (
        Faulty([(arithmetic, "divide", lambda x, shift: (x + ((1 << shift) >> 1)) >> shift)]),
        "ties in round, in fixed point",
    ),
    "currents of more bits": (UNWRAPPED, "overflow of spikes"),
    "sums of more bits": (UNWRAPPED, "overflow of messages"),
    "voltages of more bits": (
        UNSATURATED,
        "overflow of spikes",
    ),
    "states of more bits": (
        UNSATURATED,
        "overflow of messages",
    ),
    "overflows not counted": (
        Faulty(result=lambda r: replace(r, overflows={})),
        "overflow of spikes",
    ),
    "signals missing": (Faulty(recording=lambda _, r: replace(r, signals={})), "one neuron"),
    "populations missing": (Faulty(result=lambda r: replace(r, firing={})), "nothing recorded"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_case_made_for_a_fault_finds_it(fault: str) -> None:
    backend, name = FAULTS[fault]
    with pytest.raises(AssertionError, match=f"^faulty, case '{name}': "):
        check_case(backend, NAMED[name])


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_finds_a_fault(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"^faulty, case '.+': "):
        check_backend(FAULTS[fault][0], seed=1, networks=0)


@pytest.mark.parametrize(
    "fault",
    [
        "limits before the reset",
        "delays ignored",
        "gain read at firing",
        "threshold to be exceeded",
        "single precision",
    ],
)
def test_random_networks_find_a_fault_by_themselves(fault: str) -> None:
    def passes(number: int) -> bool:
        try:
            check_case(FAULTS[fault][0], draw_case(2, number))
        except AssertionError:
            return False
        return True

    assert sum(passes(number) for number in range(8)) <= 6


def test_reference_with_its_own_parts_passes() -> None:
    """So that what the faults are found by is the fault."""
    right: list[list[Replaced]] = [
        [spiking_with(), (SpikingNeurons, "rest", rest)],
        [advance_by(in_order)],
        [advance_by(regrouped("nowhere"))],
    ]
    for parts in right:
        report = check_backend(Faulty(parts), seed=1, networks=4)
        assert len(report.passed) == len(CASES) + 5


def test_failure_names_place_and_values() -> None:
    backend, name = FAULTS["one spike flipped"]
    with pytest.raises(AssertionError) as failure:
        check_case(backend, NAMED[name])
    assert str(failure.value) == (
        "faulty, case 'reset by subtraction': sample 1, step 3, population 'a', unit 4: "
        "message is 0.0, in the reference 1.0"
    )


def test_failure_in_the_result_names_the_phase() -> None:
    backend, name = FAULTS["wrong counts"]
    with pytest.raises(AssertionError, match="sample 1, phase 'positive', population 'a', unit 1"):
        check_case(backend, NAMED[name])


def test_earliest_step_is_named() -> None:
    """With a strict threshold `tie at the threshold` differs at once, in both populations."""
    backend, name = FAULTS["threshold to be exceeded"]
    with pytest.raises(AssertionError, match="sample 0, step 0, population 'a', unit 0"):
        check_case(backend, NAMED[name])


def test_a_backend_that_changes_the_network_is_found() -> None:
    case = NAMED["self-projection"]
    weight = case.network.projections[0].weight
    kept = weight.copy()

    def spoil(result: Result) -> Result:
        weight[0, 0] += 1.0
        return result

    try:
        with pytest.raises(AssertionError, match="the run changed the network"):
            check_case(Faulty(result=spoil), case)
    finally:
        weight[:] = kept


def test_lost_samples_are_found() -> None:
    forgetful = Faulty(recording=lambda index, recording: None if index else recording)
    with pytest.raises(AssertionError, match="1 samples reached the sink, not 2"):
        check_case(forgetful, NAMED["one neuron"])


# What a backend lacks


NEEDED = [feature for feature in Feature if feature is not Feature.EXACT]
"""What single cases need; to be exact is what all of them are about."""


@pytest.mark.parametrize("feature", NEEDED)
def test_what_a_backend_lacks_is_skipped_with_its_reason(feature: Feature) -> None:
    reason = f"there are no {feature.value} here"
    report = check_backend(Faulty(support=Support({feature: reason})), seed=0, networks=4)
    cases = (*CASES, *draw_cases(0, 4))
    needing = {case.name for case in cases if feature in case.needs}
    assert needing
    assert report.skipped == dict.fromkeys(needing, reason)
    assert set(report.passed) == {case.name for case in cases} - needing


def test_a_backend_that_is_not_exact_is_refused_with_its_reason() -> None:
    statistical = Faulty(support=Support({Feature.EXACT: "it follows the rates"}))
    with pytest.raises(ValueError, match="it follows the rates"):
        check_backend(statistical, seed=0, networks=0)


def test_a_skipped_case_is_not_run() -> None:
    delayed = Faulty(network=undelayed, support=Support({Feature.DELAY: "no delays"}))
    assert check_backend(delayed, seed=0, networks=0).skipped


# The cases are what they say


def rasters(name: str) -> list[Mapping[str, Array]]:
    return [r.spikes for r in run_case(load_backend("reference"), NAMED[name]).recordings]


def voltages(name: str, population: str) -> Array:
    recordings = run_case(load_backend("reference"), NAMED[name]).recordings
    return np.stack([r.signals[population, "voltage"] for r in recordings])


def test_silence_and_saturation() -> None:
    assert not any(raster.any() for each in rasters("silence") for raster in each.values())
    for each in rasters("saturation"):
        assert each["a"].all()
        assert each["b"][1:].all()


def test_limits_are_reached_and_left() -> None:
    for name, limit in (("floor", -1.0), ("ceiling", 2.0)):
        at = voltages(name, "b") == limit
        assert at.any(axis=1).all()
        assert (at[:, :-1] & ~at[:, 1:]).any(axis=1).all()
    free = voltages("no limits", "b")
    assert free.min() < -2.0
    assert free.max() > 2.0


@pytest.mark.parametrize("name", ["tie at the threshold", "tie of a leaky voltage"])
def test_ties_are_exact(name: str) -> None:
    case = NAMED[name]
    assert ties(case, run_case(load_backend("reference"), case))


def test_names_are_unique() -> None:
    assert len(NAMED) == len(CASES)


def test_every_feature_is_needed_somewhere() -> None:
    assert frozenset().union(*(case.needs for case in CASES)) == frozenset(NEEDED)


@pytest.mark.parametrize("number", range(NETWORKS))
def test_random_networks_are_active_and_on_the_grid(number: int) -> None:
    case = draw_case(0, number)
    assert active(case, run_case(load_backend("reference"), case))
    assert [phase.name for phase in case.schedule] == ["free", "negative", "positive"]
    for projection in case.network.projections:
        assert np.array_equal(projection.weight / GRID, np.rint(projection.weight / GRID))
    assert any(p.source == p.target for p in case.network.projections)


def test_random_networks_repeat() -> None:
    first, again, other = draw_case(5, 3), draw_case(5, 3), draw_case(6, 3)
    assert first.network.digest == again.network.digest
    assert first.network.digest != other.network.digest


def without_spikes(case: Case) -> Case:
    quiet = tuple(replace(p, bias=np.full(p.size, -1.0)) for p in case.network.populations)
    return replace(case, network=replace(case.network, populations=quiet))


def test_a_quiet_network_is_not_active() -> None:
    case = without_spikes(draw_case(0, 0))
    assert not active(case, run_case(load_backend("reference"), case))
