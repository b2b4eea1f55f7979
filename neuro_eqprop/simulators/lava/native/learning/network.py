"""An equilibrium network that learns, as one hierarchical Lava process.

Each sample and its target run through the phases and a commit. Synapses are Lava's own
`LearningDense` with its learning engine. Populations know the phases, send the traces and the third
factor that the engine needs, and run in Python process models of this package. The rule is that
of `neuro_eqprop.spiking.plasticity` (Scellier & Bengio 2017), in floating point or with the
integers of Lava's engine.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol
from lava.proc.dense.process import LearningDense

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Phase, phase_steps
from neuro_eqprop.simulators.lava.engine import engine_of, learns
from neuro_eqprop.simulators.lava.native.exact.network import (
    InputPort,
    RoundedInput,
    weight_name,
)
from neuro_eqprop.simulators.lava.native.exact.synapses import synapses_of
from neuro_eqprop.simulators.lava.native.learning.populations import (
    LearningGraded,
    LearningPart,
    LearningSpikes,
)
from neuro_eqprop.simulators.lava.native.learning.synapses import (
    PlasticSynapses,
    synapse_arguments,
)
from neuro_eqprop.simulators.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    fixed_rows,
    message_rows,
    sample_rows,
)
from neuro_eqprop.simulators.lava.native.plan import INPUT_EXP, Row, port_name
from neuro_eqprop.spiking.ir import Gain, Graded, Population, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    LearningRule,
    PlasticNetwork,
    TrainingSamples,
)


@dataclass(frozen=True)
class RateModel:
    """What the learned weights are parameters of."""

    entry: str
    """The population of the input."""
    grid: float
    """Samples and targets are rounded to multiples of this."""
    params: Mapping[str, Array]
    """The initial parameters of the rate network."""
    make: Callable[[Mapping[str, Array]], Any]
    """Makes a `Model` of learned parameters."""
    always: str
    """The population whose outgoing weights are the biases."""
    encode: Callable[[Array], Array] = np.asarray
    """Makes targets of the rate network those of the spiking one."""


@dataclass(frozen=True)
class GivenSamples:
    """Samples that are known, and what watches the learning from them."""

    training: TrainingSamples
    watch_population: Callable[[int], Callable[[], Any]]
    """By the number of a population, a function that returns its recorder in its process."""
    watch_projection: Callable[[int], Callable[[], Any]]
    """By the number of a plastic projection."""


@dataclass(frozen=True)
class LearningPlan:
    """A network that learns from samples of its ports, or from given ones."""

    plastic: PlasticNetwork
    rates: tuple[float, ...]
    """Learning rate of each sample; later samples use the last one."""
    model: RateModel | None = None
    """For a network with ports."""
    given: GivenSamples | None = None
    """For a network without ports."""

    @property
    def network(self) -> SpikingNetwork:
        """The spiking network."""
        return self.plastic.network

    @property
    def rule(self) -> LearningRule:
        """Phases and constants of learning."""
        return self.plastic.rule

    @property
    def rate_model(self) -> RateModel:
        """That of a network with ports."""
        assert self.model is not None, "a network without ports has no rate model"
        return self.model

    @property
    def scale(self) -> float:
        """Samples and targets are multiples of it, since Lava's sources send integers."""
        return 1.0 if engine_of(self.plastic) is None else 2.0**-INPUT_EXP

    def part(self, number: int, population: Population) -> LearningPart:
        """What the process of a population is told."""
        given, ports = self.given, self.model is not None
        return LearningPart(
            self.network,
            population,
            phase_steps((*self.rule.schedule, Phase(COMMIT, 0.0, 1, 1))),
            fresh=self.rule.fresh,
            stimulus=Stimulus(0, {}, {}) if given is None else given.training.stimulus,
            has_current=ports and population.name == self.rate_model.entry,
            has_pull=ports and population.name == self.network.output,
            watch=None if given is None else given.watch_population(number),
            plastic=self.plastic,
            rates=self.rates,
            ends=given is not None,
            first=0 if given is None else given.training.first,
        )


class LearningNetwork(ExportedNetwork):
    """A network that learns, with ports `inp`, `target`, `out` and `s_<layer>`.

    A sample takes `steps` steps: its phases and a commit. `encode(x, y)` returns the data of two
    sources, `weights()` the learned weights. Vars `weights_<source>_<target>` are the weights of
    the sub-processes.
    """

    FED: tuple[str, ...] = ("inp", "target")
    ENCODED = "the data of encode(x, y)"

    def __init__(self, plan: LearningPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, network = plan, plan.network
        if plan.model is not None:
            self.inp = InPort(shape=(network[plan.model.entry].size,))
            self.target = InPort(shape=(network[network.output].size,))
            self.out = OutPort(shape=(network[network.output].size,))
            for population in network.populations:
                setattr(self, port_name(population.name), OutPort(shape=(population.size,)))
            for number, projection in enumerate(network.projections):
                if learns(plan.plastic, projection):
                    setattr(self, weight_name(network, number), Var(projection.weight.shape))
        else:
            self.FED = ()
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return "floating_pt" if engine_of(self.plan.plastic) is None else "fixed_pt"

    @property
    def steps(self) -> int:
        """Steps of a sample, the commit included."""
        return self.plan.rule.steps

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        found = [Row(name, "RoundedInput", False, 0, 0) for name in ("samples", "targets")]
        for population in self.plan.network.populations:
            kind = "LearningGraded" if population.neuron.graded else "LearningSpikes"
            found.append(Row(population.name, kind, False, population.size, 0))
        fixed_weights = "Dense" if engine_of(self.plan.plastic) is None else "IntegerSynapses"
        for projection in self.plan.network.projections:
            plastic = learns(self.plan.plastic, projection)
            name = projection.name if plastic else f"{projection.name} nudge"
            kind = "LearningDense" if plastic else fixed_weights
            # A weight that is zero can still learn.
            count = projection.weight.size if plastic else int(projection.fan_out.sum())
            found.append(Row(name, kind, kind != "IntegerSynapses", 0, count))
        return tuple(found)

    def encode(
        self, x: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Samples and targets as the data of two RingBuffers.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        y : array (samples,) or (samples, classes)
            Class numbers, or the values that the output is nudged towards.

        Returns
        -------
        array (features, samples * steps), array (classes, samples * steps)
            For `inp` and for `target`; in fixed point, integer multiples of 2^-24.
        """
        classes = self.target.shape[0]
        rows = sample_rows(x, self.steps, features=self.inp.shape[0], reset_interval=None)
        graded = self.plan.network[self.plan.rate_model.entry].neuron.graded
        if not graded and not (rows.min(initial=0.0) >= 0 and rows.max(initial=0.0) <= 1):
            raise ValueError(
                "x has values outside 0..1, the range of spike rates; use code 'graded'"
            )
        targets = self.plan.rate_model.encode(target_rows(y, len(rows), classes))
        sent: list[npt.NDArray[Any]] = [rows, targets]
        if self.fixed:
            sent = [fixed_rows(values, self.plan.scale) for values in sent]
        return np.repeat(sent[0].T, self.steps, axis=1), np.repeat(sent[1].T, self.steps, axis=1)

    def rates(self, messages: npt.ArrayLike) -> Array:
        """Rates (samples, units) in the free phase, from messages (units, samples * steps)."""
        sent = message_rows(messages, self.steps)
        free = self.plan.rule.schedule[0]
        sent = sent.reshape(len(sent), -1, self.steps)[..., : free.steps]
        output = self.plan.network[self.plan.network.output].neuron
        shown = sent.cumsum(axis=2) if isinstance(output, Graded) else sent
        return np.asarray(shown[..., -free.window :].mean(axis=2).T)

    def decode(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Classes (samples,) predicted in the free phase, from (classes, samples * steps)."""
        return np.asarray(self.rates(messages).argmax(axis=1))

    def weights(self) -> dict[str, Array]:
        """The weights (targets, sources) by projection; call it before `stop()`.

        Lava reads weights one by one: 200 000 take about ten seconds.
        """
        network, found = self.plan.network, dict[str, Array]()
        for number, projection in enumerate(network.projections):
            if learns(self.plan.plastic, projection):
                values = getattr(self, weight_name(network, number)).get()
                step = self.plan.plastic.weight_step(self.plan.plastic.part_of(projection.name))
                found[projection.name] = np.array(values, dtype=np.float64) * step
        return found

    def model(self, weights: Mapping[str, Array] | None = None) -> Any:  # noqa: ANN401
        """The rate model with the learned weights, or with those of an earlier `weights()`."""
        learned, model = self.weights() if weights is None else weights, self.plan.rate_model
        params = {
            name: learned[name]
            if name in learned
            else learned[f"{model.always}->{name}"].reshape(value.shape)
            for name, value in model.params.items()
        }
        return model.make(params)

    def save(
        self,
        run: str | Path,
        *,
        dataset: str | Path | None = None,
        force: bool = False,
        weights: Mapping[str, Array] | None = None,
    ) -> None:
        """Write the learned model as a run folder or a `.safetensors` file, as `Model.save`."""
        self.model(weights).save(run, dataset=dataset, force=force)


@implements(proc=LearningNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class LearningNetworkModel(ExportedNetworkModel):
    """Sub-processes of a network that learns, and their connections."""

    def __init__(self, proc: LearningNetwork) -> None:
        super().__init__(proc)
        plan, network = proc.plan, proc.plan.network
        cells, plastic = dict[str, Any](), list[tuple[int, Any]]()
        for number, population in enumerate(network.populations):
            kind = LearningGraded if population.neuron.graded else LearningSpikes
            made = kind(plan.part(number, population))
            cell = self.keep(f"cells_{number}", made, population.name)
            cells[population.name] = cell
        for number, projection in enumerate(network.projections):
            target = cells[projection.target]
            if learns(plan.plastic, projection):
                made = plastic_synapses(plan, number)
                conn = self.keep(f"synapses_{number}", made, projection.name)
                target.y1.connect(conn.s_in_y1)
                target.y2.connect(conn.s_in_y2)
                target.y3.connect(conn.s_in_y3)
                plastic.append((number, conn))
            else:
                made = synapses_of(network, projection)
                conn = self.keep(f"synapses_{number}", made, f"{projection.name} nudge")
            cells[projection.source].s_out.connect(conn.s_in)
            conn.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
        if plan.model is not None:
            self.expose(proc, plan.model, cells)
            for number, conn in plastic:
                getattr(proc, weight_name(network, number)).alias(conn.weights)

    def expose(self, proc: LearningNetwork, model: RateModel, cells: Mapping[str, Any]) -> None:
        """Connect the ports; samples and targets are read in the first step of each sample."""
        network, steps = proc.plan.network, proc.steps
        for port, cell_port, name in (
            (proc.inp, cells[model.entry].c_in, "samples"),
            (proc.target, cells[network.output].p_in, "targets"),
        ):
            made = RoundedInput(port.size, model.grid, InputPort(proc.plan.scale), interval=steps)
            rounded = self.keep(name, made)
            port.connect(rounded.s_in)
            rounded.a_out.connect(cell_port)
        for name, cell in cells.items():
            cell.s_out.connect(getattr(proc, port_name(name)))
        cells[network.output].s_out.connect(proc.out)


def target_rows(y: npt.ArrayLike, samples: int, classes: int) -> Array:
    """Targets (samples, classes) from class numbers or values; raises ValueError for wrong ones."""
    given = np.asarray(y)
    if given.shape not in ((samples,), (samples, classes)):
        raise ValueError(
            f"y has shape {given.shape}; {samples} samples of {classes} classes need "
            f"({samples},) or ({samples}, {classes})"
        )
    values = given.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("y has values that are not finite")
    if values.ndim > 1:
        return values
    numbers = values.astype(np.int64)
    wrong = (numbers != values) | (numbers < 0) | (numbers >= classes)
    if wrong.any():
        raise ValueError(
            f"y holds {values[wrong][0]:g}, which is no class number: they are 0..{classes - 1}"
        )
    return np.asarray(np.eye(classes)[numbers])


def plastic_synapses(plan: LearningPlan, number: int) -> LearningDense:
    """Plastic synapses: Lava's own, or recorded ones."""
    if plan.given is None:
        return LearningDense(**synapse_arguments(plan.plastic, number))
    watch = plan.given.watch_projection(number)
    return PlasticSynapses(plan.plastic, number, first=plan.given.training.first, watch=watch)
