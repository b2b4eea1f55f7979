"""Sections of the report page, in their order: a new section is a module and a line here."""

from __future__ import annotations

from neuro_eqprop.html_report.section import Section
from neuro_eqprop.html_report.sections import (
    about,
    agreement,
    confusion,
    energy_course,
    fields,
    joules,
    learning,
    network,
    runs,
    settling,
    simulators,
    statistics,
    synapses,
)

SECTIONS: tuple[Section, ...] = (
    runs.SECTION,
    network.SECTION,
    learning.SECTION,
    fields.SECTION,
    confusion.SECTION,
    settling.SECTION,
    energy_course.SECTION,
    statistics.SECTION,
    synapses.SECTION,
    agreement.SECTION,
    simulators.SECTION,
    joules.SECTION,
    about.SECTION,
)
