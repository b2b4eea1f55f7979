"""The biological rendering in Brian2 against the rates, on all 360 digits.

`python sims/brian2/biology.py [RUN] [--all]` takes the run in a folder, or trains the default one;
`--all` tries each option by itself too. Prints a table in Markdown.
"""

from __future__ import annotations

import tempfile
import time
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import torch

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.runs.evaluate import accuracy_of, agreement, equilibria
from neuro_eqprop.simulators.biology.settings import BASE, NOISY, Biology, Refractory
from neuro_eqprop.simulators.biology.simulator import settle
from neuro_eqprop.training.study import Study

TWO = {"base": BASE, "leak 20 ms, noise 0.2, delay 2 ms": NOISY}
MORE = {
    "0.5 s": replace(BASE, duration=0.5),
    "4 s": replace(BASE, duration=4.0),
    "dt 0.5 ms": replace(BASE, dt=0.5e-3),
    "rmax 50 Hz": replace(BASE, rmax=50.0),
    "synapses of 1 ms": replace(BASE, tau_s=1e-3),
    "synapses of 20 ms": replace(BASE, tau_s=20e-3),
    "delay 10 ms": replace(BASE, delay=10e-3),
    "leak 50 ms": replace(BASE, tau_m=50e-3),
    "leak 20 ms": replace(BASE, tau_m=20e-3),
    "noise 0.2": replace(BASE, noise=0.2),
    "noise 1": replace(BASE, noise=1.0),
    "refractory 2 ms, held": replace(BASE, refractory=2e-3, refractory_kind=Refractory.HOLD),
    "refractory 10 ms, held": replace(BASE, refractory_kind=Refractory.HOLD),
    "Dale's law": replace(BASE, dale=True),
    "Dale's law, leak, noise, delay": replace(NOISY, dale=True),
    "leak, noise, delay; another seed": replace(NOISY, seed=1),
}


def trained(folder: Path) -> Run:
    """The default run, made in a folder as `neuro-eqprop train` does: on one thread."""
    torch.set_num_threads(1)
    run_training(Study(), folder, force=False, resume=False, on_epoch=lambda line: None)
    return open_run(folder)


def compare(run: Run, settings: dict[str, Biology]) -> None:
    """A row for each setting."""
    test = run.data.test
    spiking = run.model.to_spiking(code="rate")
    network, stimulus = spiking.network, spiking.encode(test.x)
    exact = equilibria(run.model.network, run.model.params, test.x)
    print(
        f"{len(test)} test samples; accuracy of the rates {accuracy_of(exact.drive, test.y):.2%}\n"
    )
    print("| setting | accuracy | agreement | Pearson | RMSE | spikes per sample | time |")
    print("|---|---|---|---|---|---|---|")
    for name, biology in settings.items():
        began = time.perf_counter()
        result = settle(biology, network, stimulus)
        firing = {layer: values[:, 0] for layer, values in result.firing.items()}
        drive = result.drive[network.output][:, 0]
        found = agreement(run.model.network, (exact.state, exact.drive), (firing, drive))
        spikes = sum(int(sent.sum()) for sent in result.messages.values()) / len(test)
        print(
            f"| {name} | {accuracy_of(drive, test.y):.2%} | {found['agreement']:.2%} | "
            f"{found['pearson'] or 0.0:.5f} | {found['rmse']:.4f} | {spikes:.0f} | "
            f"{time.perf_counter() - began:.0f} s |",
            flush=True,
        )


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="trained if not given")
    parser.add_argument("--all", action="store_true", help="every option by itself")
    args = parser.parse_args()
    settings = TWO | MORE if args.all else TWO
    if args.run is not None:
        compare(open_run(args.run), settings)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(trained(Path(folder) / "run"), settings)


if __name__ == "__main__":
    main()
