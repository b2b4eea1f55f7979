"""Run folders as Lava processes with ports, for scripts that use Lava.

It needs neither the data set of the run nor torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neuro_eqprop.api.model import Model
from neuro_eqprop.simulators.lava.native.watch import watch

if TYPE_CHECKING:
    from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

__all__ = ["Network", "watch"]
MODEL = "model.safetensors"
"""The file of a run folder that holds the model."""


class RunNetwork:
    """Namespace of `from_run`, which returns a network as a Lava process."""

    @staticmethod
    def from_run(
        path: str | Path,
        *,
        neurons: str = "exact",
        code: str = "graded",
        bits: int | None = None,
        reset_interval: int | None = None,
        name: str | None = None,
    ) -> ExactNetwork | StockNetwork:
        """Return the network of a run folder as one Lava process.

        Parameters
        ----------
        path : str or Path
            A run folder, or a `.safetensors` file of a model.
        neurons : str
            "exact" for the messages of the backend "lava", "stock" for processes of `lava.proc`
            alone.
        code : str
            "graded" (sigma-delta messages) or "rate" (binary spikes).
        bits : int, optional
            8 for fixed point; None for floating point.
        reset_interval : int, optional
            Steps of a sample, after which all states are reset; None never resets.
        name : str, optional
            The name of the process.

        Returns
        -------
        lava.magma.core.process.process.AbstractProcess
            As `SpikingModel.to_lava` returns it.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> from neuro_eqprop.lava import Network
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/lava")
        >>> net = Network.from_run("runs/lava", reset_interval=32)  # doctest: +SKIP
        """
        place = Path(path)
        file = place / MODEL if place.is_dir() else place
        if not file.is_file():
            raise FileNotFoundError(
                f"{file} does not exist; name a finished run folder, which holds {MODEL}"
            )
        spiking = Model.load(file).to_spiking(code=code, bits=bits)
        return spiking.to_lava(neurons=neurons, reset_interval=reset_interval, name=name)


Network = RunNetwork
"""`Network.from_run` returns a network as a Lava process."""
