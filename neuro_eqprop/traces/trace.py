"""`Trace`: recorded activity of a network, in memory or in a file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError, type_name
from neuro_eqprop.simulators.recordings import Record, SpikeTrain, TraceData, rule_of
from neuro_eqprop.simulators.synapse_recording import HEBBIAN, Synapse, SynapseLog
from neuro_eqprop.traces.dataframe import Frame, Labelled, to_pandas, to_xarray
from neuro_eqprop.traces.export import to_csv, to_npz
from neuro_eqprop.traces.plots.interactive import InteractiveFigure, show_trace
from neuro_eqprop.traces.plots.statistics import plot_energy, plot_psth, plot_weights
from neuro_eqprop.traces.plots.traces import Axes, plot_raster, plot_settling, plot_synapse

if TYPE_CHECKING:
    from neuro_eqprop.training.trained import TrainedNetwork

ALL = slice(None)
Block: TypeAlias = Any
"""A neo.Block; Neo need not be installed."""


class Trace(TraceData):
    """Recorded activity of a network: rates or spikes, signals, synapse histories.

    `Model.record` and `SpikingModel.record` return one; `open_trace` opens one in a file, whose
    arrays are read when they are indexed. Both have the same attributes and methods.

    Attributes
    ----------
    layers, phases : tuple of str
        Names of the recorded layers and of the phases (free, negative, positive).
    samples, steps : int
        Number of samples, and of steps of one sample over all phases.
    index, label : array of shape (samples,)
        Position of each sample in its data set, and its class.
    inputs : array of shape (samples, features)
        Input data.
    spikes : mapping of layer to SpikeTrain
        `step`, `unit` and `value` of every spike; steps count on from sample to sample.
    signals : mapping of (layer, variable) to array of shape (samples * steps, units)
        Recorded variables: `rate`, `drive`, `voltage` (membrane potential) or `state`.
    hebbian : mapping of connection to SynapseLog
        Histories of single synapses: `pre`, `post`, `product`, `tag`, `weight`, each of shape
        (samples * steps, synapses).
    weights : mapping of connection to Weights
        `before` the run and, if it learned, `after`; shape (target units, source units).
    counts : mapping of (layer, phase) to Counts
        Spikes, synaptic operations and neuron updates.
    snapshots : Snapshots
        Complete weight matrices at chosen moments of a run that learns: `sample` and `weights`.
    rule : mapping of str to array
        Of a run that learns: `tau`, `batch`, `contrast` by phase, and by sample `rate`, `commit`
        and, for each connection C, `eta/C` and `keep/C`: at a commit, w = keep w + eta tag.
    targets : array of shape (samples, classes) or None
        Values that the nudged phases pull the output to.
    step_seconds : float
        Duration of a step in seconds.
    time : array of shape (steps,)
        Middle of each step in seconds from the start of its sample: (k + 1/2) step_seconds.
    max_rate : float
        Firing rate in hertz of a unit whose rate is one.
    origin : Origin
        Backend, network digest, package versions, seed, date, command and duration of a step.

    Examples
    --------
    >>> import numpy as np
    >>> from neuro_eqprop.dynamics.schedules import free_only
    >>> from neuro_eqprop.simulators.recordings import Origin, RecordingPlan, Recording
    >>> from neuro_eqprop.spiking.activity import ActivityKind
    >>> from neuro_eqprop.simulators.recordings import parse_record
    >>> kinds = {"hidden": ActivityKind.SPIKES}
    >>> plan = RecordingPlan(
    ...     origin=Origin("example", "", {}, 0, "", ""),
    ...     schedule=free_only(steps=8, window=6),
    ...     kinds=kinds,
    ...     sizes={"hidden": 3},
    ...     connections=("input->hidden",),
    ...     index=np.array([0]),
    ...     label=np.array([7]),
    ...     inputs=np.zeros((1, 64)),
    ...     record=parse_record([], kinds),
    ... )
    >>> spikes = np.zeros((8, 3))
    >>> spikes[::2, 1] = 1.0
    >>> trace = Trace.from_recordings(plan, [Recording({"hidden": spikes}, {})], {})
    >>> trace
    <Trace from example: 1 sample of 8 steps (free 8), layers hidden>
    >>> trace.rate("hidden").tolist()
    [[0.0, 0.5, 0.0]]

    """

    def __repr__(self) -> str:
        return f"<Trace {self._summary()}>"

    def _summary(self) -> str:
        phases = ", ".join(f"{phase.name} {phase.steps}" for phase in self.schedule)
        samples = f"{self.samples} sample{'' if self.samples == 1 else 's'}"
        return (
            f"from {self.origin.backend}: {samples} of {self.steps} steps ({phases}), "
            f"layers {', '.join(self.layers)}" + ("" if self.complete else ", not complete")
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{kind.value}</td><td>{self.sizes.get(name, '')}</td>"
            f"<td>{escape(', '.join(recorded_variables(self, name)))}</td></tr>"
            for name, kind in self.kinds.items()
        )
        synapses = "".join(
            f"<br>{escape(name)}: histories of {len(log.synapses)} synapses"
            for name, log in self.hebbian.items()
        )
        return (
            f"<div><strong>Trace</strong> {escape(self._summary())}{synapses}"
            "<table><thead><tr><th>layer</th><th>activity</th><th>units</th><th>recorded</th></tr>"
            f"</thead><tbody>{rows}</tbody></table></div>"
        )

    def load(self, record: Record | None = None, samples: slice = ALL) -> Trace:
        """Trace in memory, of everything or of a part.

        Parameters
        ----------
        record : Record, optional
            Spikes, signals and synapses to keep; all of them unless given.
        samples : slice, optional
            Consecutive samples to keep.

        """
        chosen = record or Record(
            frozenset(self.spikes),
            frozenset(self.signals),
            {name: log.synapses for name, log in self.hebbian.items()},
        )
        if not isinstance(samples, slice):
            raise TypeError(f"samples is {type_name(samples)}; give a slice, such as slice(0, 5)")
        part = range(len(self.index))[samples]
        if part.step != 1:
            raise ValueError(f"samples must be consecutive, not in steps of {part.step}")
        part = range(part.start, max(part.start, part.stop))
        rows = slice(part.start * self.steps, part.stop * self.steps)
        return Trace(
            origin=self.origin,
            schedule=self.schedule,
            kinds=self.kinds,
            connections=self.connections,
            index=self.index[part.start : part.stop],
            label=self.label[part.start : part.stop],
            inputs=np.asarray(self.inputs[part.start : part.stop], dtype=np.float64),
            spikes={name: self._load_spikes(name, part) for name in sorted(chosen.spikes)},
            signals={key: self._load_signal(key, rows) for key in sorted(chosen.signals)},
            counts=self.counts,
            complete=self.complete,
            weights=dict(self.weights),
            hebbian={name: self._load_synapses(name, rows) for name in sorted(chosen.hebbian)},
            epochs=self.epochs,
            targets=None
            if self.targets is None
            else np.asarray(self.targets[part.start : part.stop], dtype=np.float64),
            snapshots=self.snapshots,
            rule=rule_of(self.rule, slice(part.start, part.stop)),
        )

    def _load_spikes(self, layer: str, part: range) -> SpikeTrain:
        if layer not in self.spikes:
            raise UnknownNameError("layer with recorded spikes", layer, self.spikes)
        train, first = self.spikes[layer], part.start * self.steps
        rows = slice(*np.searchsorted(train.step, (first, part.stop * self.steps)))
        return SpikeTrain(train.step[rows] - first, train.unit[rows], train.value[rows], train.size)

    def _load_signal(self, key: tuple[str, str], rows: slice) -> Array:
        if key not in self.signals:
            known = [":".join(each) for each in self.signals]
            raise UnknownNameError("recorded signal", ":".join(key), known)
        return np.asarray(self.signals[key][rows], dtype=np.float64)

    def _load_synapses(self, connection: str, rows: slice) -> SynapseLog:
        if connection not in self.hebbian:
            raise UnknownNameError("connection with recorded synapses", connection, self.hebbian)
        return self.hebbian[connection].part(rows)

    def to_pandas(self, name: str, variable: str, samples: slice = ALL) -> Frame:
        """A recorded variable as a pandas DataFrame.

        Parameters
        ----------
        name : str
            Name of a layer, or of a connection for `hebbian`.
        variable : str
            `spikes`, a signal such as `rate` or `voltage`, or `hebbian`.
        samples : slice, optional
            Consecutive samples to convert.

        Returns
        -------
        pandas.DataFrame
            For `spikes` a row per spike: sample, label, phase, step, time, unit, value. Otherwise
            a row per step, indexed by sample, phase, step and time, and a column per unit or
            synapse. `time` is in seconds from the start of the sample.

        """
        return to_pandas(self.load(only(name, variable), samples), name, variable)

    def to_xarray(self, name: str, variable: str, samples: slice = ALL) -> Labelled:
        """A recorded variable as an xarray DataArray; parameters as for `to_pandas`.

        Returns
        -------
        xarray.DataArray
            Dimensions (sample, step, unit), or (value, sample, step, synapse) for `hebbian`, with
            the coordinates label, phase, beta and time (in seconds). Spikes are dense: 0 where a
            unit is silent.

        """
        return to_xarray(self.load(only(name, variable), samples), name, variable)

    def to_npz(self, path: str | Path) -> Path:
        """Write all arrays to a compressed NumPy archive; return its path."""
        return to_npz(self.load(), Path(path))

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write all arrays as CSV tables into a new folder; return their paths."""
        return to_csv(self.load(), Path(folder))

    def to_nwb(self, path: str | Path, *, dt: float | None = None) -> Path:
        """Write a Neurodata Without Borders file; return its path.

        Parameters
        ----------
        path : str or Path
            File to write; its name must end in .nwb.
        dt : float, optional
            Duration of a step in seconds; that of the trace unless given.

        """
        from neuro_eqprop.traces.nwb import to_nwb

        return to_nwb(self.load(), Path(path), dt=dt)

    def to_neo(self) -> Block:
        """The trace as a Neo block, for Elephant and other tools.

        Returns
        -------
        neo.Block
            A segment for each sample, all of them starting at time zero: a spike train for each
            unit with recorded spikes (`hidden.3`), a signal for each recorded variable, an epoch
            for each phase; `label`, `input` and `target` are annotations of the segment.

        """
        from neuro_eqprop.traces.neo import to_neo

        return to_neo(self.load())

    @classmethod
    def from_neo(cls, block: Block, *, step: float | None = None) -> Trace:
        """A trace of the spike trains of a Neo block, for statistics, rasters and `compare`.

        Parameters
        ----------
        block : neo.Block
            Each of its segments is a sample, as long as the shortest of them. The annotations
            `population` and `unit` of a spike train name its layer and place, `label` of a segment
            its stimulus.
        step : float, optional
            Duration of a step in seconds; 1 ms unless given.

        Returns
        -------
        Trace

        """
        from neuro_eqprop.traces.foreign import from_neo

        return from_neo(block, step=step)

    @classmethod
    def from_nwb(cls, path: str | Path, *, step: float | None = None) -> Trace:
        """A trace of the spike trains of an NWB file, recorded here or elsewhere.

        Parameters
        ----------
        path : str or Path
            A file of `to_nwb`, or any other with spike times. Trials of others are samples, as
            long as the shortest of them; the column `population` of their units names layers.
        step : float, optional
            Duration of a step in seconds, for a file of others; 1 ms unless given.

        Returns
        -------
        Trace

        """
        from neuro_eqprop.traces.foreign import from_nwb

        return from_nwb(Path(path), step=step)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the trace to an HDF5 file that `open_trace` opens; return its path."""
        from neuro_eqprop.traces.file import write

        write(Path(path), self.load(), overwrite=overwrite)
        return Path(path)

    def plot_raster(self, layer: str, sample: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw the spike raster of a layer.

        Parameters
        ----------
        layer : str
            Layer with recorded spikes.
        sample : int
            Position of the sample in this trace.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; those of a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes

        """
        return plot_raster(self.load(only(layer, "spikes")), layer, sample, ax=ax)

    def plot_settling(
        self, layer: str, sample: int = 0, *, units: int = 10, ax: Axes | None = None
    ) -> Axes:
        """Draw how the rates of a layer converge in each phase; parameters as for `plot_raster`.

        The `units` whose rates vary most over the steps are drawn.
        """
        return plot_settling(self, layer, sample, units=units, ax=ax)

    def show(
        self, layer: str | None = None, sample: int = 0, *, units: int = 10
    ) -> InteractiveFigure:
        """Return an interactive figure of rates over the phases, which a notebook shows.

        It zooms, shows values under the pointer, and needs no widget, server or connection.

        Parameters
        ----------
        layer : str, optional
            Layer with recorded rates or spikes; the last one unless given.
        sample : int
            Position of the sample in this trace.
        units : int
            How many units are drawn: those whose rates vary most.

        Returns
        -------
        InteractiveFigure
            With `save("figure.html")`.

        """
        return show_trace(
            self, self.layers_with_rates[-1] if layer is None else layer, sample, units
        )

    def plot_psth(
        self, layer: str, *, bins: int = 32, label: int | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the peri-stimulus time histogram of a layer: its mean rate in hertz.

        Parameters
        ----------
        layer : str
            Layer with recorded spikes.
        bins : int
            Number of bins over the steps of a sample.
        label : int, optional
            Class of the samples to average; all samples unless given.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; those of a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes

        """
        return plot_psth(self.load(only(layer, "spikes")), layer, bins=bins, label=label, ax=ax)

    def plot_energy(
        self, model: TrainedNetwork, sample: int = 0, *, ax: Axes | None = None
    ) -> Axes:
        """Draw the energy of the network along settling, for rates and for firing rates.

        Counts of spikes start again with each phase: the curve goes on once they span its window.

        Parameters
        ----------
        model : Model
            The model that was recorded.
        sample : int, optional
            Position of the sample in this trace.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; those of a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes

        """
        from neuro_eqprop.traces.spike_statistics import counted_steps, settling_energy

        course = np.where(counted_steps(self), settling_energy(model, self), np.nan)
        return plot_energy(self, course, sample, ax=ax)

    def plot_weights(self, connection: str, *, ax: Axes | None = None) -> Axes:
        """Draw the weights of a connection as a matrix: after the run if it learned."""
        return plot_weights(self, connection, ax=ax)

    def plot_synapse(
        self, connection: str, synapse: Synapse | None = None, sample: int = 0
    ) -> list[Axes]:
        """Draw the history of a synapse: pre, post, product, tag and weight over the steps.

        Parameters
        ----------
        connection : str
            Connection whose synapses were recorded, such as "hidden->output".
        synapse : (int, int), optional
            Target unit and source unit; the synapse with the largest tag unless given.
        sample : int
            Position of the sample in this trace.

        Returns
        -------
        list of matplotlib.axes.Axes
            One for each of the five values.

        """
        log = self.load(only(connection, HEBBIAN))
        return plot_synapse(log, connection, synapse, sample)


def recorded_variables(trace: TraceData, layer: str) -> list[str]:
    """Names of the recorded variables of a layer."""
    signals = [variable for name, variable in trace.signals if name == layer]
    return [*(["spikes"] if layer in trace.spikes else []), *signals]


def only(name: str, variable: str) -> Record:
    """Record of one variable of one layer or connection."""
    if variable == "spikes":
        return Record(frozenset({name}))
    if variable == HEBBIAN:
        return Record(hebbian={name: ()})
    return Record(signals=frozenset({(name, variable)}))
