"""The gallery of plots: every plot function in one line, with the figure it draws.

`python sims/gallery/figures.py` runs each line of `PLOTS` after `SETUP`, and writes
docs/reference/gallery.md with the pictures beside it.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
PAGE, PICTURES = ROOT / "docs" / "reference" / "gallery.md", ROOT / "docs" / "pictures" / "gallery"
SETUP = """\
import neuro_eqprop as ne

data = ne.load_data("digits")
model = ne.train("layered", data, hidden=(32,), epochs=8, seed=0)
x, y = data.test.x[:20], data.test.y[:20]
rates = model.record(x, y, phases=True)
trace = model.to_spiking(code="rate").record(x, y, phases=True, on="emulator")
chip = ne.learn_on_chip(
    "layered",
    data,
    hidden=(32,),
    code="rate",
    epochs=2,
    samples=200,
    beta=0.2,
    learning_rate=0.05,
    record=["input:spikes", "hidden->output:hebbian"],
)
run = model.to_spiking(code="rate").run(x, on="emulator")
energy = ne.estimate_energy(run, ["loihi1", "loihi2"])
"""
PLOTS = {
    "raster": ("Spike raster of a layer in one sample", 'trace.plot_raster("hidden", sample=3)'),
    "settling": ("Rates of the units that vary most", 'trace.plot_settling("output", sample=3)'),
    "psth": ("Peri-stimulus time histogram", 'trace.plot_psth("hidden")'),
    "synapse": ("History of a synapse that learns", 'chip.trace.plot_synapse("hidden->output")'),
    "weights": ("Weights after learning", 'chip.trace.plot_weights("hidden->output")'),
    "history": ("Accuracy over the epochs", "model.history.plot()"),
    "loss": ("Loss over the epochs", "model.history.plot(loss=True)"),
    "compare": ("Rates against spikes", "ne.compare(rates, trace).plot()"),
    "descent": ("Energy E(t) along settling", "trace.plot_energy(model, sample=3)"),
    "energy": ("Joules on several chips", "energy.plot()"),
    "terms": ("Joules of one chip by term", 'energy["loihi1"].plot()'),
    "pairs": ("What one pair of spikes does", 'ne.pair_protocol("emulator").plot()'),
    "timing": (
        "Change of synapses against spike timing",
        'ne.spike_timing(chip.trace, "hidden->output").plot()',
    ),
}


def main() -> None:
    """Draw every figure and write the page."""
    mpl.use("Agg")
    mpl.rcParams.update({"figure.figsize": (6.0, 3.6), "figure.dpi": 80, "font.size": 9})
    from matplotlib import pyplot

    PICTURES.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    links = "\n".join(
        f'<a href="#{slugify(title, "-")}"><img src="../pictures/gallery/{key}.png" alt="{title}" '
        f'loading="lazy"><span>{title}</span></a>'
        for key, (title, _) in PLOTS.items()
    )
    made_by = (
        "## The lines before\n\nA plot draws with matplotlib and returns its axes (a list of them "
        "for a synapse), to label or save: `axes.figure.savefig(...)`. Most take `ax=` to draw "
        "into axes of your own. `trace.show()` is interactive. All figures need these lines once; "
        "`python sims/gallery/figures.py` runs them and draws all."
    )
    parts = [
        "# Gallery",
        "Every figure is one line of Python. Click a picture for its line.",
        f'<div class="thumbnails">\n{links}\n</div>',
        made_by,
        f"```python\n{SETUP}```",
    ]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        exec(SETUP, names)
        for key, (title, line) in PLOTS.items():
            drawn = eval(line, names)
            axes = drawn[0] if isinstance(drawn, list) else drawn
            if isinstance(drawn, list):
                axes.figure.set_size_inches(6.0, 7.0)
            axes.figure.savefig(PICTURES / f"{key}.png", metadata={"Software": None})
            pyplot.close("all")
            parts += [f"## {title}", f"![{title}](../pictures/gallery/{key}.png)"]
            parts.append(f"```python\n{line}\n```")
            print(key, flush=True)
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
