"""Energy results as text for a terminal, in at most 100 columns."""

from neuro_eqprop.chips.energy.display.console import console_or_default
from neuro_eqprop.chips.energy.display.text import print_chips, print_report, print_terms

__all__ = ["console_or_default", "print_chips", "print_report", "print_terms"]
