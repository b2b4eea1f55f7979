"""A spiking network as a `brian2.Network` to extend with your own objects.

It has no Python callbacks: it runs with NumPy, with Cython, and in C++ standalone mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.dynamics.schedules import tail
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.biology.network import ContinuousNetwork
from neuro_eqprop.simulators.biology.network import continuous as continuous_network
from neuro_eqprop.simulators.biology.settings import BASE, Biology
from neuro_eqprop.simulators.brian2 import BACKEND, continuous, groups
from neuro_eqprop.simulators.brian2.setup import Handle, settings
from neuro_eqprop.simulators.brian2.setup import simulator as import_brian2
from neuro_eqprop.simulators.registry import check_run, load_backend
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, Stimulus
from neuro_eqprop.spiking.lowered import LoweredNetwork

brian2 = import_brian2()


class Brian2Network(brian2.Network):  # type: ignore[misc, name-defined]
    """A spiking network with its groups, synapses and monitors by name.

    Samples run side by side: neuron j of a population of n is number k n + j for sample k.
    `SpikingModel.to_brian2` returns one.

    Attributes
    ----------
    groups : dict of str to NeuronGroup
        By population. Variables that you may set: `outside` (bias plus input current), `pull` (the
        target times the strength of the nudge), `beta`, and the state (`v` or `x`).
    synapses : dict of str to Synapses
        By projection, "hidden->output"; those of the nudge are "output->output beta".
    spikes : dict of str to SpikeMonitor
        By population; for graded messages with their value `q`.
    drive : StateMonitor
        The variable `drive` of the output, from which classes are read.
    step : Quantity
        Time of a step: `network.run(32 * network.step)`.
    """

    def __init__(
        self, spiking: LoweredNetwork, samples: int, biology: Biology | None = None
    ) -> None:
        super().__init__()
        self.spiking, self.samples, self.biology = spiking, samples, biology
        self.description = spiking.network
        rest = self._checked(Stimulus(samples, {}, {}))
        self._made: ContinuousNetwork | None = None
        if biology is not None:
            self._made = continuous_network(biology, self.description, rest)
            self.description = self._made.network
        seconds = self.description.dt if biology is None else biology.step
        self.step = seconds * brian2.second
        clock = brian2.Clock(
            dt=(seconds if biology is None else biology.dt) * brian2.second, name="steps"
        )
        self.groups: dict[str, Handle] = {}
        self.synapses: dict[str, Handle] = {}
        self._build(clock, rest)
        self.spikes: dict[str, Handle] = {
            p.name: brian2.SpikeMonitor(
                self.groups[p.name],
                variables=["q"] if isinstance(p.neuron, Graded) else None,
                name=f"spikes_{identifier(p.name)}",
            )
            for p in self.description.populations
        }
        output = self.groups[self.description.output]
        self.drive: Handle = brian2.StateMonitor(
            output, "drive", record=True, when="end", clock=clock, name=f"drive_{output.name}"
        )
        self.add(self.groups.values(), self.synapses.values(), self.spikes.values(), self.drive)

    def _checked(self, stimulus: Stimulus) -> Stimulus:
        """The stimulus; raises an error if the backend cannot run it or the network."""
        backend = (
            load_backend(BACKEND.name)
            if self.biology is None
            else continuous.Brian2Biology(self.biology)
        )
        check_run(backend, self.spiking.network, stimulus)
        return stimulus

    def _build(self, clock: Handle, stimulus: Stimulus) -> None:
        """Build groups and synapses, in discrete steps or in continuous time."""
        network = self.description
        if self._made is None:
            neurons = partial(groups.neurons, brian2, network, stimulus=stimulus, tables=None)
            connect = partial(groups.synapses, brian2, samples=self.samples)
        else:
            white = continuous.OWN_NOISE
            neurons = partial(continuous.neurons, brian2, self._made, white=white)
            connect = partial(continuous.synapses, brian2, self._made)
        for p in network.populations:
            self.groups[p.name] = neurons(population=p, clock=clock, name=identifier(p.name))
        for projection in network.projections:
            if projection.synapses.values.any():
                name = self._free_name(label(projection), self.synapses)
                self.synapses[name] = connect(
                    projection=projection,
                    groups=self.groups,
                    clock=clock,
                    name=identifier(name),
                )

    @staticmethod
    def _free_name(name: str, taken: Iterable[str]) -> str:
        """The name, with a number if it is taken, as for projections that differ only in delay."""
        found, number = name, 2
        while found in taken:
            found, number = f"{name} {number}", number + 1
        return found

    def set_input(self, x: npt.ArrayLike) -> None:
        """Set the input current of every population from samples x (samples, features)."""
        self._set(self.spiking.encode(x), "outside")

    def set_target(self, target: npt.ArrayLike) -> None:
        """Set the targets (samples, classes) that the output is nudged towards when beta is set."""
        nothing = np.zeros((self.samples, self.spiking.rate.input.size))
        self._set(self.spiking.encode(nothing, np.asarray(target, dtype=np.float64)), "pull")

    def _set(self, stimulus: Stimulus, variable: str) -> None:
        if stimulus.samples != self.samples:
            raise ValueError(
                f"{stimulus.samples} samples do not fit a network of {self.samples}; "
                f"use to_brian2(samples={stimulus.samples})"
            )
        stimulus = self._checked(stimulus)
        if self._made is not None:
            made = continuous_network(self._made.biology, self.spiking.network, stimulus)
            stimulus = made.stimulus
        given = stimulus.current if variable == "outside" else stimulus.pull
        for p in self.description.populations:
            nothing = np.zeros((self.samples, p.size))
            values = given.get(p.name, nothing) + (p.bias if variable == "outside" else 0.0)
            setattr(self.groups[p.name], variable, values.ravel())

    def set_beta(self, beta: float) -> None:
        """Set the nudging strength beta of all populations: 0 in a free phase."""
        for group in self.groups.values():
            group.beta = beta

    def raster(self, name: str, steps: int) -> Array:
        """The spikes or graded messages of a population in the first steps, from its monitor.

        Returns
        -------
        array (samples, steps, units)
        """
        monitor, units = self.spikes[name], self.description[name].size
        found = np.zeros((self.samples, steps, units))
        step = np.floor(np.asarray(monitor.t) / float(self.step) + 1e-6).astype(np.int64)
        sample, unit = np.divmod(np.asarray(monitor.i), units)
        inside = step < steps
        value = np.asarray(monitor.q) if "q" in monitor.record_variables else np.ones(len(step))
        np.add.at(found, (sample[inside], step[inside], unit[inside]), value[inside])
        return found

    def decode(self) -> Ints:
        """The class of each sample: the largest mean drive in the last part of the recording."""
        drive = np.asarray(self.drive.drive)
        window = tail(drive.shape[1], self.spiking.coding.tail)
        mean = drive[:, -window:].mean(axis=1).reshape(self.samples, -1)
        return np.asarray(mean[:, : self.spiking.rate.output.size].argmax(axis=1))


def label(projection: Projection) -> str:
    """The name of a projection; that of one scaled by beta ends in "beta"."""
    return projection.name + (" beta" if projection.gain is Gain.BETA else "")


def identifier(name: str) -> str:
    """A name as Brian2 requires it: "hidden->output" becomes hidden_to_output."""
    signs = {"->": "_to_", "+": "_plus", "-": "_minus"}
    for sign, spelled in signs.items():
        name = name.replace(sign, spelled)
    return re.sub(r"\W", "_", name)


def brian2_network(
    spiking: LoweredNetwork,
    *,
    x: npt.ArrayLike | None = None,
    samples: int = 1,
    continuous_time: bool = False,
    biology: Mapping[str, Any] | None = None,
) -> Brian2Network:
    """The model as a Brian2 network, see `SpikingModel.to_brian2`."""
    known = [field.name for field in fields(BASE)]
    for name in biology or {}:
        if name not in known:
            raise UnknownNameError("option of continuous time", name, known)
    if biology and not continuous_time:
        raise ValueError(
            f"{', '.join(biology)}: an option of membranes in continuous time; use continuous=True"
        )
    options = replace(BASE, **(biology or {})) if continuous_time else None
    if options is not None and options.pairs and options.noise:
        raise BackendError(
            "the two neurons of a pair of dale=True need the same noise, and Brian2's generator "
            "draws it for each neuron; use noise=0, or the backend brian2-biology"
        )
    count = samples if x is None else len(spiking.samples(x))
    # Variables have 64 bits even if the user's preferences say otherwise; these are restored.
    with settings(brian2):
        network = Brian2Network(spiking.with_nudge(), count, options)
        if x is not None:
            network.set_input(x)
    return network
