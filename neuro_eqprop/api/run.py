"""`Run`: an opened run folder, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import ArgumentError, UnknownNameError, check_options
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data import hold_out
from neuro_eqprop.files.write import append_json, refuse_existing
from neuro_eqprop.runs.energy import export_sanafe
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.evaluate import RATES, Evaluation, check_rates
from neuro_eqprop.runs.export import export_lava, export_netx
from neuro_eqprop.runs.run_folder import EVALUATIONS, TRACES, RunFolder, open_folder
from neuro_eqprop.runs.simulate import RecordedRun, record_rates, record_spikes
from neuro_eqprop.runs.simulation_settings import (
    RecordingSettings,
    SimulationSettings,
    no_announcement,
)
from neuro_eqprop.runs.training_result import training_result
from neuro_eqprop.runs.translate import translate
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.simulators.registry import BACKENDS
from neuro_eqprop.spiking.codes import Code, find_code
from neuro_eqprop.training.study import Study

FORMATS = ("nir", "lava", "netx", "c", "sanafe")
"""Formats of `Run.translate`."""


@dataclass(frozen=True, eq=False, repr=False)
class Run(RunFolder):
    """A run folder with a model and its results, as `open_run` returns it.

    Parameters
    ----------
    path : Path
        The folder, or a NIR file.
    model : Model
        The trained or converted model in `model.safetensors`, or that of the NIR file.
    study : Study
        The settings in `study.toml`.
    spiking : SpikingModel, optional
        The spiking model of a NIR file, whose code and bits are fixed; None for a folder.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/example")
    >>> ne.open_run("runs/example").path.name
    'example'
    """

    path: Path
    model: Model
    study: Study
    spiking: SpikingModel | None = None

    def _repr_html_(self) -> str:
        held = ", ".join(sorted(path.name for path in self.path.iterdir()))
        rows = {"model": repr(self.model), "data": self.study.dataset, "files": held}
        return html_table(f"Run {self.path}", rows)

    def evaluate(
        self,
        *,
        on: str | Backend = "rate",
        samples: int | None = None,
        code: str | Code | None = None,
        bits: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Evaluation:
        """Evaluate the model on test samples and append the result to `evaluations.jsonl`.

        Parameters
        ----------
        on : str or Backend
            "rate", "numpy" or a simulator.
        samples : int, optional
            Use only the first test samples; all if None.
        code : str, optional
            Spike code on a simulator; "rate" if None, or that of a NIR file.
        bits : int, optional
            Bits of the weights in fixed point; floating point if None, or as in a NIR file.
        **options
            `steps`, `input`, `progress`, `workers`, `executor` and `deadline` as in
            `Model.evaluate`.

        Returns
        -------
        Evaluation
            Accuracy and agreement.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/evaluated")
        >>> run = ne.open_run("runs/evaluated")
        >>> run.evaluate(on="emulator", code="graded", samples=20).samples
        20
        >>> run.evaluations[-1]["on"]
        'emulator'
        """
        chosen, bits_held = self.coding(code, bits)
        if on in RATES:
            check_rates(on, None if self.spiking else code, bits)
            bits_held = None
        split = self.test_samples(samples)
        found = self.model.evaluate(split, on=on, code=chosen, bits=bits_held, **options)
        if self.spiking is None:
            append_json(self.path / EVALUATIONS, {"run": str(self.path), **found.to_dict()})
        return found

    def record(
        self,
        *,
        on: str | Backend,
        samples: int | None = 10,
        out: str | Path | None = None,
        phases: bool = False,
        record: Iterable[str] = (),
        force: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> RecordedRun:
        """Run test samples, as rates or as spikes on a simulator, and write a trace file.

        Parameters
        ----------
        on : str or Backend
            "rate" or a simulator.
        samples : int, optional
            Use only the first test samples; all if None.
        out : str or Path, optional
            Trace file to write; by default `traces.h5` in the run folder, or next to a NIR file.
        phases : bool
            Whether two nudged phases (-beta, +beta) follow the free phase.
        record : iterable of str
            Further variables to record: "hidden:voltage", "hidden->output[3,17]:hebbian".
        force : bool
            Whether to replace the trace file.
        **settings
            `code`, `bits` and `input` as in `evaluate`; `steps`, `progress`, `workers`,
            `executor` and `deadline` as in `SpikingModel.run`; `announce`, called with the
            recording plan before the first step; `repeats`, how often the samples are shown, each
            time with other random numbers.

        Returns
        -------
        RecordedRun
            The recording, with its `trace`; `to_json()` returns the fields of `simulate --json`.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/simulated")
        >>> run = ne.open_run("runs/simulated")
        >>> found = run.record(on="emulator", samples=2, steps=20, phases=True)
        >>> found.path.name, found.trace.rate("hidden", "free").shape
        ('traces.h5', (2, 16))
        """
        if isinstance(on, str) and on != "rate" and on not in BACKENDS:
            raise UnknownNameError("backend", on, ("rate", *BACKENDS))
        announce = settings.pop("announce", None) or no_announcement
        repeats = settings.pop("repeats", 1)
        code, bits = settings.pop("code", None), settings.pop("bits", None)
        coding = settings.pop("input", "current")
        check_options(SimulationSettings, settings, "option of record")
        chosen, chosen_bits = self.coding(code, bits)
        beside = self.path / TRACES if self.spiking is None else self.path.with_suffix(".h5")
        path = Path(out or beside)
        refuse_existing(path, force=force)
        split = self.test_samples(samples)
        recording = RecordingSettings(
            phases=phases,
            record=record,
            out=path,
            force=force,
            announce=announce,
            repeats=repeats,
        )
        run = SimulationSettings(on=on, **settings)
        x, y = recording.repeated(split.x), recording.repeated(split.y)
        if on == "rate":
            check_rates(on, None, bits)
            return record_rates(
                self.model,
                x,
                y,
                recording,
                steps=chosen.steps if run.steps is None else run.steps,
                tail_fraction=chosen.tail,
                progress=run.progress,
            )
        spiking = self.model.to_spiking(code=chosen, bits=chosen_bits, input=coding)
        return record_spikes(self.model, spiking, x, y, recording, run)

    def translate(  # noqa: PLR0913 - keyword arguments, all with defaults
        self,
        out: str | Path,
        *,
        to: str = "nir",
        code: str | Code | None = None,
        bits: int | None = None,
        nudged: bool = False,
        neurons: str = "exact",
        steps: int | None = None,
        samples: int = 20,
        force: bool = False,
    ) -> dict[str, Any]:
        """Export the spiking network to a NIR file, a Lava package, a netx file or C source.

        Parameters
        ----------
        out : str or Path
            The file to write; with `to="lava"` and `to="c"` the folder.
        to : str
            "nir" (a NIR file with the exact step semantics in its metadata), "lava" (a package
            that depends only on lava-nc), "netx" (a file for lava-dl), "c" (C99 in integers, see
            `SpikingModel.to_c`) or "sanafe" (a folder with the architecture of Loihi 1 and the
            network with its spikes for SANA-FE).
        code : str, optional
            Spike code; "rate" for NIR and "graded" for the others if None.
        bits : int, optional
            Bits of the weights in fixed point; if None 8 for C, and floating point for the others.
        nudged : bool
            Whether a NIR file includes the synapses of the nudge.
        neurons : str
            Processes of a Lava package: "exact", or "stock" for those of `lava.proc`.
        steps : int, optional
            Steps of a sample of Lava, netx or C; the default is that of the code.
        samples : int
            Test samples on which the agreement of Lava, netx or C with the rates is measured.
        force : bool
            Whether to replace an existing file or folder.

        Returns
        -------
        dict
            The fields of `translate --json`.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/translated")
        >>> made = ne.open_run("runs/translated").translate("net.nir", code="graded", bits=8)
        >>> made["path"], made["bits"], len(made["populations"])
        ('net.nir', 8, 2)
        """
        if to not in FORMATS:
            raise UnknownNameError("format", to, FORMATS)
        if to == "sanafe":
            name = None if code is None else find_code(code).name
            settings = EnergySettings(samples=samples, code=name, bits=bits, steps=steps)
            x = self.data.test.take(slice(samples)).x
            predicted = self.model.predict(x)
            written = export_sanafe(self, Path(out), settings, predicted=predicted, force=force)
            return {"run": str(self.path), "to": to, **written}
        chosen = find_code(code or ("rate" if to == "nir" else "graded"))
        head = {"run": str(self.path), "to": to}
        if to == "nir":
            found = translate(self.model, out, code=chosen, nudged=nudged, force=force, bits=bits)
            return head | found
        x = self.data.test.take(slice(samples)).x
        if to == "c":
            spiking = self.model.to_spiking(code=chosen, bits=8 if bits is None else bits)
            return head | spiking.to_c(out, x, steps=steps, force=force).to_json()
        if to == "netx":
            if chosen is not Code.GRADED:
                raise ArgumentError(f"a netx file holds graded messages, not code {chosen.name!r}")
            return head | export_netx(self.model, out, x, steps=steps, force=force).to_json()
        made = export_lava(
            self.model, out, x, code=chosen, bits=bits, neurons=neurons, steps=steps, force=force
        )
        return head | made.to_json()

    def summary(self) -> dict[str, Any]:
        """Return the fields of `train --json`: settings, accuracies, settling, spectral norms."""
        part = self.study.training.validation
        data = hold_out(self.data, part, self.study.seed) if part else self.data
        seconds = float(sum(row.get("seconds", 0.0) for row in self.history))
        return training_result(self.model, data, out=self.path, seconds=seconds)


def open_run(path: str | Path, *, dataset: str | Path | None = None) -> Run:
    """Open the folder of a finished run, or a NIR file.

    Parameters
    ----------
    path : str or Path
        A folder written by `train(..., out=path)` or `neuro-eqprop train --out PATH`, or a NIR file
        of `neuro-eqprop translate`.
    dataset : str or Path, optional
        Data set to evaluate a NIR file on; a run folder has its own.

    Returns
    -------
    Run
        Model, settings and results; the data set is loaded on first use.

    Raises
    ------
    RunError
        If the folder has no finished run.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/small")
    >>> run = ne.open_run("runs/small")
    >>> run.model
    Model(input 64, hidden 16, output 10, 1210 parameters, trained by hebbian on digits, 1 epoch)
    >>> len(run.history)
    1
    """
    folder = open_folder(path, dataset=dataset)
    model = Model.of(folder.model)
    spiking = None if folder.spiking is None else SpikingModel.of(model, folder.spiking)
    return Run(folder.path, model, folder.study, spiking)
