"""`from_snntorch`: a model from a fine-tuned torch module."""

from __future__ import annotations

from neuro_eqprop.api.model import Model
from neuro_eqprop.simulators.snntorch.native import SpikingModule, trained_parameters

FINE_TUNED = "fine-tuned in snnTorch"
"""Its `Model.provenance`."""


def from_snntorch(module: SpikingModule) -> Model:
    """The rate model with the weights of a fine-tuned module.

    Parameters
    ----------
    module : SpikingModule
        As `SpikingModel.to_snntorch` returns it. Weights of a module with `bits` come back rounded
        to them.

    Returns
    -------
    Model
        It can be evaluated, saved and translated to spikes like any other model.

    Examples
    --------
    >>> import neuro_eqprop as ne, torch
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> module = model.to_spiking(code="graded", bits=8).to_snntorch()
    >>> optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    >>> x, y = torch.tensor(data.train.x[:64]), torch.tensor(data.train.y[:64])
    >>> loss = torch.nn.functional.cross_entropy(module(x, steps=16).logits, y)
    >>> loss.backward()
    >>> optimizer.step()
    >>> ne.from_snntorch(module).provenance
    'fine-tuned in snnTorch'
    """
    params = trained_parameters(module)
    return Model(module.network, params, provenance=FINE_TUNED)
