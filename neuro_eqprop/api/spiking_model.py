"""`SpikingModel`: a `Model` converted to spikes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.common.arrays import Array, check_options
from neuro_eqprop.common.html import html_table
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.runs.chip_budget import ChipBudget, chip_budget
from neuro_eqprop.runs.executors import Executor
from neuro_eqprop.runs.export_c import CLearning, export_c
from neuro_eqprop.runs.simulate import record_spikes
from neuro_eqprop.runs.simulation import Simulation, run_spikes
from neuro_eqprop.runs.simulation_settings import RecordingSettings, SimulationSettings
from neuro_eqprop.runs.translate import nir_graph
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.simulators.c.export import CExport
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.traces.trace import Trace

if TYPE_CHECKING:
    from neuro_eqprop.api.model import Model
    from neuro_eqprop.simulators.brian2.native import Brian2Network
    from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork
    from neuro_eqprop.simulators.lava.native.learning.network import LearningNetwork
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork
    from neuro_eqprop.simulators.snntorch.native import SpikingModule


@dataclass(frozen=True, eq=False, repr=False)
class SpikingModel(LoweredNetwork):
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

    model: Model = field(kw_only=True)

    @classmethod
    def of(cls, model: Model, lowered: LoweredNetwork) -> SpikingModel:
        """A model and what it was lowered to."""
        return cls(
            **{f.name: getattr(lowered, f.name) for f in fields(LoweredNetwork)}, model=model
        )

    def _repr_html_(self) -> str:
        populations = ", ".join(f"{p.name} {p.size}" for p in self.network.populations)
        rows = {
            "code": self.description,
            "populations": populations,
            "synapses": self.synapses,
            "made from": repr(self.model),
        }
        return html_table("SpikingModel", rows)

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
        settings = SimulationSettings(
            on=on,
            steps=steps,
            progress=progress,
            workers=workers,
            executor=executor,
            deadline=deadline,
        )
        return run_spikes(self, self.samples(x), settings)

    def record(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        on: str | Backend = "emulator",
        steps: int | None = None,
        phases: bool = False,
        record: Iterable[str] = (),
        out: str | Path | None = None,
        **settings: Any,  # noqa: ANN401
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
        **settings
            `progress`, `workers`, `executor` and `deadline` as in `run`; samples with random
            spikes are not divided among processes.

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
        check_options(SimulationSettings, settings, "option of record")
        recording = RecordingSettings(phases=phases, record=record, out=out)
        run = SimulationSettings(on=on, steps=steps, **settings)
        return record_spikes(self.model, self, x, y, recording, run).trace

    @overload
    def to_lava(
        self,
        *,
        learning: Literal[False] = False,
        neurons: str = "exact",
        reset_interval: int | None = None,
        threshold: float | None = None,
        inputs: npt.ArrayLike | None = None,
        source: ExactNetwork | StockNetwork | None = None,
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
        inputs : array (samples, features), optional
            In fixed point: samples whose range the input port and the states hold. Without them
            the range of the port is 128 ("exact"), and the states are for values in 0..1 ("stock");
            `encode` refuses what does not fit.
        source : exported network, optional
            The network whose `out` will be connected to `inp`, which takes its messages in its
            unit, `source.out_scale`.
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
            With ports `inp`, `out`, `s_<layer>` and `i_<layer>` (a current for its units), Vars for
            biases and states ("exact" for weights too), and methods `encode(x, steps)`,
            `decode(messages, steps)`, `events(layer)`, `check(x)`, `budget(chip)` and
            `processes()`. One that learns has a port `target` too, `encode(x, y)`, `weights()`,
            `model()` and `save(run)`.

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

        check_options(learning_network if learning else lava_network, options, "option of to_lava")
        if learning:
            phases = options.get("phases")
            if options.get("beta") is None and (phases is None or isinstance(phases, int)):
                options["beta"] = self.model.beta
            return learning_network(self, self._learned_on_lava, name=name, **options)
        net = lava_network(self, name=name, **options)
        net.budget_on = self.budget
        return net

    def budget(self, profile: str | Path | Profile = "loihi2") -> ChipBudget:
        """What each layer needs on a chip beside its published limits.

        Parameters
        ----------
        profile : str, Path or Profile
            A chip, as in `estimate_energy`, which uses the same limits and placement.

        Returns
        -------
        ChipBudget
            A row for each layer: synapse memory of a core, fan-in, fan-out, bits of weights,
            messages, delays.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> budget = model.to_spiking(code="graded", bits=8).budget("loihi2")
        >>> [(row.layer, row.fan_in, row.weight_bits) for row in budget.layers]
        [('hidden', 10, 8), ('output', 16, 8)]
        """
        return chip_budget(self, profile)

    def _learned_on_lava(self, params: Mapping[str, Array]) -> Model:
        return replace(self.model, network=self.rate, params=params, provenance="learned on lava")

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
            Options of `neuro_eqprop.simulators.biology.settings.Biology` for continuous time, in SI
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
        return nir_graph(self.model, self)

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

        check_options(SpikingModule, options, "option of to_snntorch")
        return SpikingModule(self.rate, self.exact, self.coding, bits=self.bits, **options)

    def to_c(
        self,
        folder: str | Path,
        x: npt.ArrayLike | None = None,
        *,
        learning: bool = False,
        steps: int | None = None,
        force: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> CExport:
        """Write the network as C99 for a microcontroller or for high-level synthesis.

        `net.h`, `net.c`, `weights.h`, `example.c` and `README.md` need `stdint.h` alone: integers,
        static memory, loops with fixed bounds. Every message equals that of the simulators.

        Parameters
        ----------
        folder : str or Path
            The folder to write.
        x : array (samples, features), optional
            Samples that gcc compiles and runs the program on, to compare it with the rate model
            and with the reference.
        learning : bool
            Whether it learns: both phases and the Hebbian commit run on the device.
        steps : int, optional
            Steps of an inference; the default is that of the code.
        force : bool
            Whether to replace an existing folder.
        **options
            With `learning`: `beta`, by default that of the training; `rate`, the learning rate,
            0.05; `phases`, steps of a nudged phase; `batch`, samples of a commit, 1; `seed` of
            the stochastic rounding.

        Returns
        -------
        CExport
            Flash and RAM in bytes, operations and cycles of an inference, and the agreement.

        Raises
        ------
        BackendError
            If integers cannot represent the network; the message gives the reason.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> net = model.to_spiking(code="graded", bits=8).to_c("net", data.test.x[:20])
        >>> net.steps, net.ram < 4000
        (32, True)
        """
        check_options(CLearning, options, "option of to_c")
        if options and not learning:
            raise ValueError(f"{next(iter(options))} is an option of learning=True")
        learns = CLearning(**{"beta": self.model.beta, **options}) if learning else None
        rows = None if x is None else self.samples(x)
        return export_c(self.model, self, folder, rows, steps=steps, learning=learns, force=force)
