"""A trace as a block of Neo, the data model of Elephant.

A sample is a segment that starts at time zero; step k of it has the time (k + 1/2) dt.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.dataframe import import_optional
from neuro_eqprop.traces.nwb import segment_name, unit_spikes

Part: TypeAlias = Any
"""An object of Neo, which has no type hints."""


def to_neo(trace: TraceData) -> Part:
    """A block with a segment for each sample."""
    neo = import_optional("neo")
    origin = trace.origin
    block = neo.Block(
        name=origin.backend,
        description=f"{len(trace.index)} samples, a segment for each",
        command=origin.command,
        network_hash=origin.network_hash,
        seed=origin.seed,
        max_rate=trace.max_rate * import_optional("quantities").Hz,
    )
    for sample in range(len(trace.index)):
        block.segments.append(segment(trace, sample))
    return block


def segment(trace: TraceData, sample: int) -> Part:
    """The spike trains, signals and phases of a sample."""
    neo, pq = import_optional("neo"), import_optional("quantities")
    dt, rows = trace.step_seconds, slice(sample * trace.steps, (sample + 1) * trace.steps)
    made = neo.Segment(
        name=segment_name(sample),
        index=sample,
        sample=int(trace.index[sample]),
        label=int(trace.label[sample]),
        input=trace.inputs[sample],
        **({} if trace.targets is None else {"target": trace.targets[sample]}),
    )
    for layer in trace.spikes:
        for unit, (step, value) in enumerate(unit_spikes(trace, layer, sample)):
            train = neo.SpikeTrain(
                (step - rows.start + 0.5) * dt * pq.s,
                t_stop=trace.steps * dt * pq.s,
                name=f"{layer}.{unit}",
                array_annotations={"payload": value},
                population=layer,
                unit=unit,
            )
            made.spiketrains.append(train)
    for (layer, variable), values in trace.signals.items():
        rate = variable == "rate"
        signal = neo.AnalogSignal(
            values[rows] * (trace.max_rate if rate else 1.0),
            units=pq.Hz if rate else pq.dimensionless,
            sampling_period=dt * pq.s,
            t_start=dt / 2 * pq.s,
            name=f"{layer}.{variable}",
            population=layer,
        )
        made.analogsignals.append(signal)
    spans = [trace.span(phase.name) for phase in trace.schedule]
    phases = neo.Epoch(
        times=[start * dt for start, _, _ in spans] * pq.s,
        durations=[(stop - start) * dt for start, _, stop in spans] * pq.s,
        labels=[phase.name for phase in trace.schedule],
        name="phases",
        array_annotations={"beta": [phase.beta for phase in trace.schedule]},
    )
    made.epochs.append(phases)
    return made
