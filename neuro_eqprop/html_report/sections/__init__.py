"""Sections of the report page, in their order: a new section is a module and a line here."""

from __future__ import annotations

from neuro_eqprop.html_report.section import Section
from neuro_eqprop.html_report.sections import (
    about,
    agreement,
    joules,
    learning,
    runs,
    settling,
    simulators,
    synapses,
)

SECTIONS: tuple[Section, ...] = (
    runs.SECTION,
    learning.SECTION,
    settling.SECTION,
    synapses.SECTION,
    agreement.SECTION,
    simulators.SECTION,
    joules.SECTION,
    about.SECTION,
)
