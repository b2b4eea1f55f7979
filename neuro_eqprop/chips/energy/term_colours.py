"""One colour for each cost term, the same in every figure, page and terminal."""

from __future__ import annotations

COLOURS = {
    "idle after boot": ("#7f7f7f", "white"),
    "loaded above idle": ("#bcbd22", "yellow"),
    "static power": ("#8c8c8c", "white"),
    "host power": ("#c49c94", "bright_black"),
    "active power": ("#9edae5", "bright_cyan"),
    "board power": ("#c7c7c7", "bright_white"),
    "clock power": ("#dbdb8d", "bright_yellow"),
    "neuron update": ("#1f77b4", "blue"),
    "neuron spiking": ("#aec7e8", "bright_blue"),
    "spike": ("#17becf", "cyan"),
    "synop": ("#ff7f0e", "red"),
    "synop, all in": ("#ffbb78", "bright_red"),
    "message": ("#2ca02c", "green"),
    "hop ew": ("#98df8a", "bright_green"),
    "hop ns": ("#b5cf6b", "bright_green"),
    "chip link": ("#637939", "green"),
    "weight update": ("#9467bd", "magenta"),
    "tag update": ("#c5b0d5", "bright_magenta"),
    "trace update": ("#7b4173", "magenta"),
    "host MACs": ("#8c564b", "bright_black"),
}
"""By term, the colour of pages and figures, and that of a terminal."""
OTHER = ("#e377c2", "bright_magenta")


def colour_of(term: str) -> str:
    """The colour of a term in pages and figures."""
    return COLOURS.get(term, OTHER)[0]


def terminal_colour(term: str) -> str:
    """The colour of a term in a terminal."""
    return COLOURS.get(term, OTHER)[1]
