"""A diagram of the network: its layers, their sizes, and the connections between them."""

from __future__ import annotations

from html import escape

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.section import Section, Shown
from neuro_eqprop.training.trained import TrainedNetwork

WIDTH, HEIGHT, GAP = 132, 66, 74
"""Width and height of a layer in the diagram, and the space between two layers."""


def show(run: RunContents) -> Shown:
    """A diagram for each run whose model is known."""
    shown = [(each.name, each.model) for each in run.runs if each.model is not None]
    figures = "".join(
        f'<figure class="diagram"><figcaption>{escape(name)}: {escape(sentence(model))}'
        f"</figcaption>{diagram(model, k)}</figure>"
        for k, (name, model) in enumerate(shown)
    )
    what = (
        "<p>Boxes are layers with their number of units. An arrow in both directions is a "
        "symmetric connection: its weights also carry the feedback by which the output reaches the "
        "layers before it.</p>"
    )
    return Shown(what + figures if figures else "")


def sentence(model: TrainedNetwork) -> str:
    """Layers and parameters as a sentence."""
    layers = ", ".join(f"{layer.name} {layer.size}" for layer in model.network.layers)
    total = sum(int(value.size) for value in model.params.values())
    return f"{layers}; {total} parameters"


def diagram(model: TrainedNetwork, number: int) -> str:
    """The layers in a row, and an arrow for each connection, as SVG."""
    network = model.network
    places = {layer.name: k for k, layer in enumerate(network.layers)}
    width = len(places) * WIDTH + (len(places) - 1) * GAP + 20
    arcs = [c for c in network.connections if places[c.target] - places[c.source] != 1]
    top = 16 + 26 * len(arcs)
    boxes = "".join(
        f'<rect x="{left(k)}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{left(k) + WIDTH / 2}" y="{top + 28}">{escape(layer.name)}</text>'
        f'<text class="soft" x="{left(k) + WIDTH / 2}" y="{top + 49}">{layer.size} units</text>'
        for k, layer in enumerate(network.layers)
    )
    lines = []
    for connection in network.connections:
        source, target = places[connection.source], places[connection.target]
        both = network.feeds_back(connection)
        tip = f"url(#tip-{number})"
        ends = f'marker-end="{tip}"' + (f' marker-start="{tip}"' if both else "")
        if target - source == 1:
            y = top + HEIGHT / 2
            lines.append(f'<path d="M{left(source) + WIDTH + 9} {y} H{left(target) - 9}" {ends}/>')
            continue
        high = 10 + 26 * arcs.index(connection)
        x0, x1 = left(source) + WIDTH * 0.66, left(target) + WIDTH * 0.33
        lines.append(f'<path d="M{x0} {top - 4} V{high} H{x1} V{top - 9}" {ends}/>')
    label = escape(f"Diagram of the network: {sentence(model)}")
    head = (
        f'<defs><marker id="tip-{number}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    return (
        f'<div class="wide" tabindex="0"><svg class="network" '
        f'viewBox="0 0 {width} {top + HEIGHT + 10}" '
        f'width="{width}" role="img" aria-label="{label}">{head}{boxes}{"".join(lines)}</svg></div>'
    )


def left(place: int) -> int:
    """Left edge of a layer."""
    return 10 + place * (WIDTH + GAP)


SECTION = Section("network", "Network", show)
