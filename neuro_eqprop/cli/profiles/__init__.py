"""`neuro-eqprop profiles`: the chips, their numbers and sources."""

from neuro_eqprop.cli.profiles.command import COMMAND

__all__ = ["COMMAND"]
