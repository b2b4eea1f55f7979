"""Array operations of rate networks, one implementation for each array library."""

from typing import TYPE_CHECKING

from neuro_eqprop.common.lazy import lazy_names

if TYPE_CHECKING:
    from neuro_eqprop.networks.ops.torch import TorchOps as TorchOps

__getattr__ = lazy_names(__name__, {"TorchOps": "torch"})
