"""Accuracy and synaptic operations of pruned models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from neuro_eqprop.data import Split
from neuro_eqprop.runs.evaluate import accuracy_of, equilibria
from neuro_eqprop.runs.simulation import run_spikes
from neuro_eqprop.runs.simulation_settings import SimulationSettings
from neuro_eqprop.spiking.codes import Code, find_code
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.training.trained import TrainedNetwork, prune


@dataclass(frozen=True, slots=True)
class Pruned:
    """Accuracy and cost of a pruned model."""

    fraction: float
    """Fraction of the weights that was removed, smallest first."""
    synapses: int
    """Synapses of the spiking network, including those of the input."""
    rate_accuracy: float
    accuracy: float
    """Accuracy of the spikes on the emulator."""
    synops_per_sample: float


def prune_curve(
    model: TrainedNetwork,
    split: Split,
    fractions: Iterable[float],
    *,
    code: str | Code = "graded",
    steps: int | None = None,
) -> list[Pruned]:
    """Prune a model by each fraction, and run it as spikes on the emulator.

    Parameters
    ----------
    model : Model
        A trained model.
    split : Split
        Labelled samples.
    fractions : iterable of float
        Fractions of the weights to remove, in [0, 1).
    code : str
        Spike code; input is coded as spikes, too.
    steps : int, optional
        Steps of a sample; the default is that of the code.

    Returns
    -------
    list of Pruned
        One for each fraction.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> from neuro_eqprop.runs.prune import prune_curve
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(32,), epochs=3)
    >>> before, after = prune_curve(model, data.test.take(slice(50)), [0.0, 0.5])
    >>> after.synops_per_sample < before.synops_per_sample
    True
    """
    rows, code = [], find_code(code)
    coding = "graded" if code.accumulates else "rate"
    for fraction in fractions:
        pruned = prune(model, fraction)
        spiking = lower_network(pruned.network, pruned.params, code=code, input=coding)
        run = run_spikes(spiking, split.x, SimulationSettings(steps=steps))
        rates = equilibria(pruned.network, pruned.params, split.x, damping=model.damping)
        rows.append(
            Pruned(
                fraction,
                sum(each.synapses.count for each in spiking.network.projections),
                accuracy_of(rates.drive, split.y),
                run.accuracy(split.y),
                run.total.synops / run.samples,
            )
        )
    return rows
