"""`neuro-eqprop energy`: energy per inference on hardware profiles."""

from neuro_eqprop.cli.energy.command import COMMAND

__all__ = ["COMMAND"]
