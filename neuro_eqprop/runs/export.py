"""Export a model as a Lava package or a netx file, and measure its agreement with the rates."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.files.write import (
    make_folder,
    refuse_existing,
    refuse_foreign,
    replace_folder,
    temporary_folder,
    write_text,
)
from neuro_eqprop.simulators.lava import package
from neuro_eqprop.simulators.lava.export import NEURONS, input_exponent, stock_plan
from neuro_eqprop.simulators.lava.netx import MESSAGE_BITS, simulate_netx, write_netx
from neuro_eqprop.simulators.lava.simulator import interpreter
from neuro_eqprop.spiking.codes import Code, find_code
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.training.trained import TrainedNetwork

SAMPLES = 20
"""Default number of samples for the agreement."""
LEAST = 0.99
"""Agreement below which an export warns."""


@dataclass(frozen=True)
class Export:
    """An exported network, and its agreement with the rate network.

    Parameters
    ----------
    path : Path
        The file or folder.
    code, neurons : str
        Spike code, and "exact" or "stock".
    bits : int, optional
        Bits of the weights.
    agreement : float
        Fraction of samples with the same predicted class as the rate network.
    samples : int
        Number of samples of the agreement.
    load : str
        Python expression that loads it.
    """

    path: Path
    code: str
    neurons: str
    bits: int | None
    agreement: float
    samples: int
    load: str

    @property
    def warning(self) -> str | None:
        """A warning if the agreement is low, else None."""
        if self.agreement >= LEAST:
            return None
        return (
            f"only {100 * self.agreement:.1f} % of {self.samples} samples have the class of the "
            f"rate network; use more steps, or measure on more samples"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self) | {"path": str(self.path), "warning": self.warning}


def export_lava(
    model: TrainedNetwork,
    folder: str | Path,
    x: npt.ArrayLike,
    *,
    code: str | Code = "graded",
    bits: int | None = None,
    neurons: str = "exact",
    steps: int | None = None,
    force: bool = False,
) -> Export:
    """Write the model as a Python package that depends only on lava-nc.

    Parameters
    ----------
    model : Model
        A trained or converted model.
    folder : str or Path
        The folder of the package; its name is the package's name.
    x : array (samples, features)
        Samples of the package's example, which is run to measure the agreement.
    code : str
        "graded" or "rate".
    bits : int, optional
        8 for fixed point; None for floating point.
    neurons : str
        "exact" (Python process models, the messages of backend "lava") or "stock" (processes of
        `lava.proc` alone).
    steps : int, optional
        Steps of a sample; the default is that of the code.
    force : bool
        Whether to replace an existing package; a folder with other files is refused.

    Returns
    -------
    Export
        The package, with the agreement measured by its example.
    """
    place, kind = Path(folder), find_code(code)
    if neurons not in NEURONS:
        raise UnknownNameError("kind of neurons", neurons, NEURONS)
    package.check_name(place)
    refuse_foreign(place, force=force)
    steps = kind.steps if steps is None else steps
    rows = model.samples(x)
    spiking = lower_network(
        model.network, model.params, code=kind, bits=bits if neurons == "exact" else None
    )
    if neurons == "stock":
        plan = stock_plan(
            spiking.network,
            spiking.input_weights,
            bits=bits,
            reset_interval=steps,
            inputs=rows,
        )
        description, arrays = package.stock_description(plan)
    else:
        scale = 1.0 if spiking.bits is None else 2.0 ** -input_exponent(rows)
        description, arrays = package.exact_description(spiking, scale)
    python = interpreter(os.environ)
    with temporary_folder(within=make_folder(place.parent)) as temporary:
        draft = temporary / place.name
        package.write_package(
            draft, neurons=neurons, description=description, arrays=arrays, x=rows, steps=steps
        )
        predictions, table = package.run_example(draft, python)
        agreement = share_equal(predictions, model.predict(rows))
        text = package.readme(place.name, neurons, agreement, len(rows), table)
        write_text(draft / "README.md", text)
        replace_folder(draft, place)
    load = f"from {place.name} import network"
    return Export(place, kind.name, neurons, bits, agreement, len(rows), load)


def export_netx(
    model: TrainedNetwork,
    path: str | Path,
    x: npt.ArrayLike,
    *,
    steps: int | None = None,
    force: bool = False,
) -> Export:
    """Write the model as a file that lava-dl's `netx.hdf5.Network` loads.

    Parameters
    ----------
    model : Model
        A model whose hidden layers clip or are relu; units become sigma-delta neurons with 8-bit
        weights.
    path : str or Path
        The file, usually `.net`.
    x : array (samples, features)
        Samples for the agreement, which is measured with the arithmetic of netx in NumPy.
    steps : int, optional
        Steps of a sample; the default is that of the code.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    Export
        The file, with its agreement.
    """
    place, kind = Path(path), find_code("graded")
    refuse_existing(place, force=force)
    steps = kind.steps if steps is None else steps
    rows = model.samples(x)
    spiking = lower_network(model.network, model.params, code=kind)
    coding = write_netx(stock_plan(spiking.network, spiking.input_weights), place)
    messages = simulate_netx(place, coding.encode(rows, steps))
    agreement = share_equal(coding.decode(messages, steps), model.predict(rows))
    load = f"netx.hdf5.Network(net_config={str(place)!r}, input_message_bits={MESSAGE_BITS})"
    return Export(place, kind.name, "stock", 8, agreement, len(rows), load)


def share_equal(a: Ints, b: Ints | Array) -> float:
    """Return the fraction of equal entries."""
    return float(np.mean(np.asarray(a) == np.asarray(b)))
