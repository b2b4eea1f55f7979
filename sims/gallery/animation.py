"""The animation of the documentation: settling, nudge and update of one test image.

`python sims/gallery/animation.py` trains a small network and writes docs/pictures/settling.gif.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from PIL import Image

import neuro_eqprop as ne

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "settling.gif"
STEPS = 16
LAST = 14
"""Frames that show the update."""
COLOURS = {"free": "#0072b2", "nudged": "#007a5a"}


def recording() -> tuple[Any, ne.Trace, Any]:
    """A model, the trace of the correct test image that the nudge moves most, and the image."""
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(24,), epochs=6, seed=0, nudging="positive", beta=0.5)
    trace = model.record(data.test.x, data.test.y, phases=True, steps=STEPS)
    free = trace.rate("output", "free")
    moved = np.abs(trace.rate("output", trace.phases[-1]) - free).sum(axis=1)
    chosen = int(np.argmax(np.where(free.argmax(axis=1) == data.test.y, moved, -1.0)))
    one = slice(chosen, chosen + 1)
    again = model.record(data.test.x[one], data.test.y[one], phases=True, steps=STEPS)
    return model, again, data.test.x[chosen].reshape(8, 8)


def main() -> None:
    """Draw the frames and write the picture."""
    mpl.use("Agg")
    from matplotlib import pyplot

    _, trace, image = recording()
    label = int(trace.label[0])
    names = list(trace.phases)
    rates = np.concatenate([trace.running_rate("output", name)[0] for name in names])
    hidden, output = (
        {name: trace.rate(layer, name)[0] for name in (names[0], names[-1])}
        for layer in ("hidden", "output")
    )
    products = {name: np.outer(output[name], hidden[name]) for name in output}
    update = products[names[-1]] - products[names[0]]
    free = trace.schedule[0].steps
    most, frames = float(np.abs(update).max()), []
    for frame in range(len(rates) + LAST):
        step = min(frame, len(rates) - 1)
        nudged, done = step >= free, frame >= len(rates)
        figure, (left, middle, right) = pyplot.subplots(
            1, 3, figsize=(7.2, 2.6), dpi=90, width_ratios=(1, 1.7, 1.7), layout="constrained"
        )
        left.imshow(image, cmap="gray_r")
        left.set_title(f"a {label}", fontsize=10)
        left.set_axis_off()
        kind = "nudged" if nudged else "free"
        colours = ["#c4cad0"] * len(rates[step])
        colours[label] = COLOURS[kind]
        middle.bar(range(len(rates[step])), rates[step], color=colours)
        middle.set_ylim(0, 1.05)
        middle.set_xticks(range(len(rates[step])))
        middle.set_xlabel("output unit")
        middle.set_ylabel("rate")
        said = f"2 nudge towards {label}" if nudged else "1 settle"
        middle.set_title(f"{said}, step {step % free + 1}", fontsize=10, color=COLOURS[kind])
        shown = update if done else np.zeros_like(update)
        right.imshow(shown, cmap="PiYG", vmin=-most, vmax=most, aspect="auto")
        right.set_xlabel("hidden unit")
        right.set_ylabel("output unit")
        right.set_title("3 update: nudged - free product" if done else "weights wait", fontsize=10)
        held = io.BytesIO()
        figure.savefig(held, format="png")
        pyplot.close(figure)
        frames.append(Image.open(held).convert("RGB"))
    # One palette for all frames, from one of each kind.
    kinds = [frames[free - 1], frames[len(rates) - 1], frames[-1]]
    strip = Image.new("RGB", (frames[0].width, frames[0].height * len(kinds)))
    for k, each in enumerate(kinds):
        strip.paste(each, (0, k * each.height))
    palette = strip.quantize(64)
    frames = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    times = [140] * (len(frames) - 1) + [1500]
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    frames[0].save(
        PICTURE, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False
    )
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB, {len(frames)} frames")


if __name__ == "__main__":
    main()
