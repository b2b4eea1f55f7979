"""The page on settings is what the registries say."""

from __future__ import annotations

import runpy
from pathlib import Path

from neuro_eqprop.common.settings import limits_of, settings_of
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import TrainingSettings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_on_settings_is_generated_from_the_registries() -> None:
    made = runpy.run_path(str(DOCS / "_site" / "settings_page.py"))
    assert (DOCS / "reference" / "settings.md").read_text() == made["page"]()


def test_every_setting_has_a_help_text() -> None:
    tables = [
        settings_of(TrainingSettings),
        *(settings_of(type(model.settings())) for model in MODELS.values()),
        *(settings_of(rule.settings) for rule in RULES.values()),
    ]
    assert all(limits_of(field).help for table in tables for field in table.values())
