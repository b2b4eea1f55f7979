"""`SpikingModel`, a `Model` converted to spikes, and `Simulation`, the result of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import Array, Ints, Named, check_options
from neuro_eqprop.common.html import html_table
from neuro_eqprop.dynamics.schedules import DT, Schedule, free_only, tail, three_phase
from neuro_eqprop.networks.network import Role
from neuro_eqprop.networks.operators import Embedding, Normalized, Pooled
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.codes import Code, Coding, find_code
from neuro_eqprop.spiking.input_coding import (
    InputCoding,
    encode_input,
    find_input_coding,
    outer,
    steps_needed,
    with_input,
)
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import connection_synapses, lower, rates_of, signed_populations
from neuro_eqprop.spiking.operator_synapses import operator_synapses
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding, round_weight

if TYPE_CHECKING:
    from neuro_eqprop.runs.executors import Executor
    from neuro_eqprop.simulators.base import Backend
    from neuro_eqprop.simulators.brian2.native import Brian2Network
    from neuro_eqprop.simulators.lava.native.exact import ExactNetwork
    from neuro_eqprop.simulators.lava.native.learning import LearningNetwork
    from neuro_eqprop.simulators.lava.native.stock import StockNetwork
    from neuro_eqprop.simulators.snntorch.native import SpikingModule
    from neuro_eqprop.traces.trace import Trace


@dataclass(frozen=True, eq=False, repr=False)
class SpikingModel:
    """A model converted to spikes: a spiking network, its input coding and its readout.

    `Model.to_spiking` returns one.

    Parameters
    ----------
    model : Model
        The rate model.
    network : SpikingNetwork
        Populations and projections.
    params : mapping of str to array
        The float64 parameters that became `network`: those of the model, rounded if `bits` is set.
    coding : Coding
        The spike code with its constants.
    input : InputCoding
        The coding of the input.
    bits : int, optional
        Bits of the weights in fixed point; None for floating point.
    nudged : bool
        Whether `network` has the synapses of the nudge, which only nudged phases use.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> spiking = model.to_spiking(code="graded")
    >>> spiking.code, spiking.neurons
    ('graded', 26)
    """

    model: Model
    network: SpikingNetwork
    params: Mapping[str, Array]
    coding: Coding
    input: InputCoding
    bits: int | None = None
    nudged: bool = False

    def __repr__(self) -> str:
        return f"SpikingModel({self.description}, {self.neurons} neurons, {self.synapses} synapses)"

    def _repr_html_(self) -> str:
        populations = ", ".join(f"{p.name} {p.size}" for p in self.network.populations)
        rows = {
            "code": self.description,
            "populations": populations,
            "synapses": self.synapses,
            "made from": repr(self.model),
        }
        return html_table("SpikingModel", rows)

    @property
    def code(self) -> str:
        """The name of the spike code."""
        return self.coding.code.name

    @property
    def description(self) -> str:
        """The codes and the number format: "code graded, input current, 8-bit weights"."""
        bits = "" if self.bits is None else f", {self.bits}-bit weights"
        return f"code {self.code}, input {self.input.name}{bits}"

    @property
    def neurons(self) -> int:
        """The number of neurons, without those of the input."""
        outside = self.input_populations
        return sum(p.size for p in self.network.populations if p.name not in outside)

    @property
    def synapses(self) -> int:
        """The number of synapses with a nonzero weight."""
        return sum(int(p.fan_out.sum()) for p in self.network.projections)

    @property
    def input_populations(self) -> frozenset[str]:
        """The names of the populations of the input."""
        return outer(self.model.network) & {p.name for p in self.network.populations}

    @property
    def steps_needed(self) -> int:
        """Least steps of a phase in which input reaches the output and feedback returns."""
        return steps_needed(self.model.network, self.coding, self.input)

    def with_nudge(self) -> SpikingModel:
        """Return the same model with the synapses of the nudge."""
        if self.nudged:
            return self
        return to_spiking(
            self.model, code=self.coding.code, bits=self.bits, input=self.input, nudged=True
        )

    def schedule(self, steps: int | None, *, beta: float | None = None) -> Schedule:
        """A free phase of `steps` steps and, if `beta` is given, two equally long nudged ones."""
        steps = self.coding.code.steps if steps is None else steps
        part = self.coding.tail
        if beta is None:
            return free_only(steps=steps, window=tail(steps, part))
        return three_phase(beta=beta, free=steps, nudged=steps, part=part)

    @property
    def input_weights(self) -> dict[str, Array]:
        """Weights (units, features) from the input to each population."""
        rate, found = self.model.network, dict[str, Array]()
        for connection in rate.connections:
            if rate[connection.source].role is Role.INPUT:
                for name, sign in signed_populations(rate[connection.target], self.coding):
                    weight = sign * connection_synapses(rate, self.params, connection).dense()
                    found[name] = found[name] + weight if name in found else weight
        return found

    def encode(self, x: npt.ArrayLike, target: Array | None = None) -> Stimulus:
        """The stimulus of samples x (samples, features) and of targets (samples, classes)."""
        return encode_input(
            self.model.network,
            self.params,
            self.model.samples(x),
            target=target,
            coding=self.coding,
            entry=self.input,
        )

    def layer_rates(self, firing: Mapping[str, Array]) -> dict[str, Array]:
        """Rates by layer, from rates by population."""
        return rates_of(self.model.network, firing, self.coding)

    def run(
        self,
        x: npt.ArrayLike,
        *,
        on: str | Backend = "emulator",
        steps: int | None = None,
        progress: Callable[[int], None] | None = None,
        workers: int = 1,
        executor: Executor | None = None,
        deadline: float | None = None,
    ) -> Simulation:
        """Run samples on a simulator, in a free phase.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        on : str or Backend
            A simulator: "reference", "emulator", "snntorch", "brian2", "lava", ...
        steps : int, optional
            Steps of the phase; the default is that of the code.
        progress : callable, optional
            Called with the number of samples done since the last call.
        workers : int
            Threads of the emulator, or processes of another simulator, that share the samples;
            the result is the same.
        executor : Executor, optional
            Runs shards of the samples, at least `workers` of them, for example on a Dask cluster:
            `neuro_eqprop.runs.executors.make_executor("dask", scheduler="tcp://127.0.0.1:8786")`.
        deadline : float, optional
            Seconds after which the simulation is ended with a `DeadlineError`; the default is ten
            minutes and ten times the estimated time.

        Returns
        -------
        Simulation
            Predictions, rates by layer and event counts.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> run = model.to_spiking(code="graded").run(data.test.x[:3], steps=16)
        >>> run
        Simulation(3 samples on emulator, 16 steps, code graded, input current)
        >>> run.predictions.shape
        (3,)
        """
        from neuro_eqprop.runs.simulate import run_spikes
        from neuro_eqprop.runs.workers import Shared

        return run_spikes(
            *(self, self.model.samples(x)),
            on=on,
            steps=steps,
            progress=progress,
            shared=Shared(workers, executor),
            deadline=deadline,
        )

    def record(  # noqa: PLR0913 - keyword arguments, all with defaults
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        on: str | Backend = "emulator",
        steps: int | None = None,
        phases: bool = False,
        record: Iterable[str] = (),
        out: str | Path | None = None,
        workers: int = 1,
        executor: Executor | None = None,
        deadline: float | None = None,
    ) -> Trace:
        """Run samples on a simulator and record spikes and signals.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        y : array (samples,), optional
            Class numbers that the nudged phases nudge towards; if None, the predictions of the
            rate model.
        on : str or Backend
            A simulator, as in `run`.
        steps : int, optional
            Steps of each phase; the default is that of the code.
        phases : bool
            Whether two nudged phases follow the free one; Hebbian updates need them.
        record : iterable of str
            Signals to record in addition to the spikes of every population: "hidden:voltage",
            "output:drive", "hidden->output:hebbian".
        out : str or Path, optional
            A file to write the trace to, `.h5`.
        workers, executor
            As in `run`; samples with random spikes are not divided among processes.
        deadline : float, optional
            Seconds after which the simulation is ended with a `DeadlineError`; the default is ten
            minutes and ten times the estimated time.

        Returns
        -------
        Trace
            The recording, in memory.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> trace = model.to_spiking(code="rate").record(
        ...     data.test.x[:2], phases=True, record=["hidden:voltage"]
        ... )
        >>> [phase.name for phase in trace.schedule]
        ['free', 'negative', 'positive']
        >>> trace.signals["hidden", "voltage"].shape  # 2 samples of 3 phases of 64 steps
        (384, 16)
        """
        from neuro_eqprop.runs.simulate import TraceOutput, record_spikes
        from neuro_eqprop.runs.workers import Shared

        return record_spikes(
            *(self, x, y),
            on=on,
            steps=steps,
            phases=phases,
            record=record,
            output=TraceOutput(out),
            shared=Shared(workers, executor),
            deadline=deadline,
        ).trace

    @overload
    def to_lava(
        self,
        *,
        learning: Literal[False] = False,
        neurons: str = "exact",
        reset_interval: int | None = None,
        threshold: float | None = None,
        name: str | None = None,
    ) -> ExactNetwork | StockNetwork: ...

    @overload
    def to_lava(
        self,
        *,
        learning: Literal[True],
        beta: float | None = None,
        rate: float | npt.ArrayLike = ...,
        phases: int | Schedule | None = None,
        engine: bool = False,
        seed: int = 0,
        name: str | None = None,
    ) -> LearningNetwork: ...

    def to_lava(
        self, *, learning: bool = False, name: str | None = None, **options: Any
    ) -> ExactNetwork | StockNetwork | LearningNetwork:
        """Return the network as one Lava process to connect and run in your own script.

        Parameters
        ----------
        learning : bool
            Whether it learns: both phases and the learning rule run inside.
        neurons : str
            "exact" sends the same messages as the backend "lava" and uses Python process models of
            this package. "stock" uses only processes of `lava.proc`: `SigmaDelta` for code
            graded, `ATRLIF` for code rate, `Dense` and `Sparse`.
        reset_interval : int, optional
            Steps of a sample, after which all states are reset; None never resets.
        threshold : float, optional
            With "stock" and code graded: least change of a rate for which a unit sends a message.
            The default is 1/256, or less for layers with many or strong inputs.
        beta : float, optional
            With `learning`: strength of the nudge, -beta and then +beta after the free phase; the
            default is that of the training.
        rate : float or array (samples,)
            With `learning`: the learning rate, or that of each sample; default 0.05. Weights have
            no limit, where `learn_on_chip` clips them to 4.
        phases : int or Schedule, optional
            With `learning`: steps of a nudged phase, or all phases; the default is that of the
            code.
        engine : bool
            With `learning` and code rate: learn in fixed point with the 9-bit weights and the
            stochastic rounding of Lava's engine, as `learn_on_chip(engine=True)` does.
        seed : int
            With `engine`: the seed of the rounding.
        name : str, optional
            The name of the process.

        Returns
        -------
        lava.magma.core.process.process.AbstractProcess
            With ports `inp`, `out` and `s_<layer>`, Vars for weights, biases and states, and
            methods `encode(x, steps)`, `decode(messages, steps)` and `processes()`. One that learns
            has a port `target` too, `encode(x, y)`, `weights()`, `model()` and `save(run)`.

        Raises
        ------
        BackendError
            If the processes cannot run the network; the message gives the reason.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> net = model.to_spiking(code="graded").to_lava(reset_interval=32)  # doctest: +SKIP
        >>> source.s_out.connect(net.inp)  # doctest: +SKIP
        """
        from neuro_eqprop.simulators.lava.export import lava_network, learning_network

        make = learning_network if learning else lava_network
        check_options(make, options, "option of to_lava")
        return make(self, name=name, **options)

    def to_brian2(
        self,
        x: npt.ArrayLike | None = None,
        *,
        samples: int = 1,
        continuous: bool = False,
        **biology: Any,  # noqa: ANN401
    ) -> Brian2Network:
        """Return the network as a `brian2.Network` to extend with your own objects.

        Parameters
        ----------
        x : array (samples, features), optional
            Samples, which run in parallel; None leaves the input zero until `set_input`.
        samples : int
            The number of samples, if `x` is not given.
        continuous : bool
            Discrete steps with the spikes of the backend "brian2", or membranes and synapses in
            continuous time as in the backend "brian2-biology".
        **biology
            Options of `neuro_eqprop.simulators.brian2.membrane.Biology` for continuous time, in SI
            units: `dt`, `tau_m`, `tau_s`, `delay`, `noise`, `rmax`, ...

        Returns
        -------
        Brian2Network
            With `groups`, `synapses`, `spikes` and `drive` by name; `set_input`, `set_target` and
            `set_beta` set the stimulus and the phase. It runs with NumPy, Cython and in C++
            standalone mode.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> network = model.to_spiking(code="rate").to_brian2(data.test.x[:2])
        >>> network.groups["hidden"].N, sorted(network.synapses)[0]
        (32, 'hidden->output')
        >>> network.run(64 * network.step)  # doctest: +SKIP
        >>> network.decode()  # doctest: +SKIP
        """
        from neuro_eqprop.simulators.brian2.native import brian2_network

        return brian2_network(
            self, x=x, samples=samples, continuous_time=continuous, biology=biology
        )

    def to_nir(self) -> Any:  # noqa: ANN401
        """Return the network as a `nir.NIRGraph`; its metadata hold the exact description.

        Returns
        -------
        nir.NIRGraph
            `nir.write` saves it, `neuro_eqprop.from_nir` reads it back.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> graph = model.to_spiking(code="rate").to_nir()
        >>> "population_0_hidden" in graph.nodes
        True
        """
        from neuro_eqprop.runs.translate import nir_graph

        return nir_graph(self)

    def to_snntorch(self, **options: Any) -> SpikingModule:  # noqa: ANN401
        """Return the network as a trainable `torch.nn.Module`.

        Parameters
        ----------
        **options
            Options of `SpikingModule`: `surrogate`, `dtype`.

        Returns
        -------
        SpikingModule
            It sends the same spikes as the backends; gradients use a surrogate. `from_snntorch`
            converts a fine-tuned module back.

        Examples
        --------
        >>> import neuro_eqprop as ne, torch
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> module = model.to_spiking(code="graded").to_snntorch()
        >>> module(torch.rand(5, 64), steps=16).logits.shape
        torch.Size([5, 10])
        """
        from neuro_eqprop.simulators.snntorch.native import SpikingModule

        network, params = self.model.network, self.model.params
        check_options(SpikingModule, options, "option of to_snntorch")
        return SpikingModule(network, params, self.coding, bits=self.bits, **options)


def to_spiking(
    model: Model,
    *,
    code: str | Code = "rate",
    bits: int | None = None,
    input: str | InputCoding = "current",  # noqa: A002
    nudged: bool = False,
) -> SpikingModel:
    """The model as spikes, see `Model.to_spiking`; `nudged` adds the synapses of the nudge.

    In fixed point, input weights are rounded as well, even if the host multiplies by them.
    """
    coding, entry = Coding(find_code(code)), find_input_coding(input)
    params = {name: value.astype(np.float64) for name, value in model.params.items()}
    rounding = None if bits is None else Rounding(bits)
    if rounding is not None:
        for connection in model.network.connections:
            exact = params[connection.name]
            params[connection.name] = round_weight(exact, rounding, finest=coding.grid).weight
    made = lower(model.network, params, dt=DT, coding=coding, nudged=nudged)
    network = with_input(model.network, params, made, coding=coding, entry=entry)
    if rounding is not None:
        network = quantise(network, rounding)[0]
    return SpikingModel(model, network, params, coding, entry, bits, nudged)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """The result of a run of a spiking model on a simulator, in a free phase.

    Parameters
    ----------
    spiking : SpikingModel
        The model that ran.
    backend : str
        The name of the simulator.
    schedule : Schedule
        The phases; the first is the free one.
    rates : mapping of str to array (samples, units)
        The rates of each layer, averaged over the window of the phase.
    drive : array (samples, classes)
        The mean drive (pre-activation) of the output, from which classes are read.
    counts : mapping of (population, phase) to Counts
        Spikes, synaptic operations and neuron updates, summed over samples.
    overflows : int
        In fixed point, how often a current wrapped or a voltage saturated.
    seconds : float
        Wall-clock time of the run.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> run = model.to_spiking().run(data.test.x[:4], on="reference", steps=32)
    >>> run.rates["hidden"].shape, run.total.synops > 0
    ((4, 16), True)
    >>> 0.0 <= run.accuracy(data.test.y[:4]) <= 1.0
    True
    """

    spiking: SpikingModel
    backend: str
    schedule: Schedule
    rates: Mapping[str, Array]
    drive: Array
    counts: Mapping[tuple[str, str], Counts]
    overflows: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", Named("layer", self.rates))
        object.__setattr__(self, "counts", Named("population and phase", self.counts))

    def __repr__(self) -> str:
        return f"Simulation({self.description})"

    def _repr_html_(self) -> str:
        rows = {
            "run": self.description,
            "neurons": self.spiking.neurons,
            "spikes per sample": f"{self.total.spikes / self.samples:.1f}",
            "synaptic operations per sample": f"{self.total.synops / self.samples:.1f}",
            "time": f"{self.seconds:.2f} s",
        }
        return html_table("Simulation", rows)

    @property
    def description(self) -> str:
        """Samples, simulator, steps and codes of the run."""
        where = f"{self.samples} samples on {self.backend}, {self.steps} steps"
        return f"{where}, {self.spiking.description}"

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.drive)

    @property
    def steps(self) -> int:
        """Steps of the free phase."""
        return self.schedule[0].steps

    @property
    def network(self) -> SpikingNetwork:
        """The spiking network that ran."""
        return self.spiking.network

    @property
    def predictions(self) -> Ints:
        """The class of each sample: the output unit with the largest drive."""
        return np.asarray(self.drive.argmax(axis=1))

    def accuracy(self, y: npt.ArrayLike) -> float:
        """The fraction of samples whose prediction equals the label in y (samples,)."""
        labels = np.asarray(y)
        if labels.shape != self.predictions.shape:
            raise ValueError(
                f"y has shape {labels.shape}; this simulation has {len(self.predictions)} samples"
            )
        return float((self.predictions == labels).mean())

    @cached_property
    def total(self) -> Counts:
        """The counts of all populations together."""
        return sum(self.counts.values(), Counts())

    @cached_property
    def dense_macs(self) -> int:
        """Multiplications of one dense feed-forward pass, for comparison."""
        return dense_macs(self.spiking.model)


def dense_macs(model: Model) -> int:
    """Multiplications of one dense feed-forward pass, after normalisation and average pooling.

    The table of an embedding is looked up, which takes none.
    """
    network, total = model.network, 0
    for connection in network.connections:
        operator, shape = connection.operator, network[connection.source].shape
        while isinstance(operator, Normalized | Pooled):
            if isinstance(operator, Pooled):
                shape = operator.pooled_shape(shape)
            operator = operator.inner
        if not connection.loops and not isinstance(operator, Embedding):
            weight = model.params[connection.name]
            total += operator_synapses(operator, weight, shape).count
    return total
