"""Generate docs/reference/settings.md from the registries.

python docs/_site/settings_page.py > docs/reference/settings.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field
from typing import Any

from neuro_eqprop.cli.setting_options import shown
from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.common.settings import limits_of, settings_of
from neuro_eqprop.networks.activations import ACTIVATIONS, activation
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.training.defaults import ALL, DERIVED, Derived
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Nudging, TrainingSettings
from neuro_eqprop.training.study import TOP, Study

INTRODUCTION = """\
# Settings

Every setting of a training run, with its default. [Models and learning \
rules](../explanation/models.md) has the equations. A run stores its settings in `study.toml`, in \
one table each for the model, the update rule and the training. `train --set`, the options of \
`train` and the keyword arguments of `neuro_eqprop.train` use the same names, with or without the \
table: `epochs` or `training.epochs`. A setting that the model or the rule does not have is \
refused. A package can add models, rules and data sets through entry points of the groups \
`neuro_eqprop.models`, `neuro_eqprop.rules` and `neuro_eqprop.datasets`.

This page is generated: `python docs/_site/settings_page.py > docs/reference/settings.md`.
"""


def page() -> str:
    """Return the page as Markdown."""
    top = {key: field for key, field in settings_of(Study).items() if key in TOP}
    nudgings = ((f"`{n.value}`", n.label) for n in Nudging)
    parts = [
        INTRODUCTION,
        "## Above the tables\n",
        settings_table(top),
        "## `[model]`\n",
        table(("name", "model"), ((f"`{n}`", MODELS[n].label) for n in built_in(MODELS))),
        *tables_of({name: type(MODELS[name].settings()) for name in built_in(MODELS)}),
        "### Activations\n",
        activation_table(),
        "## `[rule]`\n",
        table(("name", "update", "nudging"), (rule_row(name) for name in built_in(RULES))),
        *tables_of({name: RULES[name].settings for name in built_in(RULES)}),
        "### Nudging\n",
        table(("name", "nudged phases"), nudgings),
        "## `[training]`\n",
        settings_table(settings_of(TrainingSettings)),
        DERIVED_INTRODUCTION,
        table(("setting", "models", "value"), map(derived_row, DERIVED)),
    ]
    return "\n".join(parts)


DERIVED_INTRODUCTION = """\
## Defaults of `train`

`train` derives these from the model and the data, in this order, where they are not stated; the \
tables above have the values of preset `chip`. [The defaults of \
training](../explanation/defaults.md) has the reasons.
"""


def derived_row(each: Derived) -> tuple[str, str, str]:
    """Return the row of a derived default."""
    models = "all of them" if each.models == ALL else ", ".join(f"`{name}`" for name in each.models)
    return f"`{each.setting}`", models, each.meaning


def built_in(registry: Registry[Any]) -> list[str]:
    """Return the names of a registry, without those of plug-ins."""
    return list(registry.built_in)


def tables_of(kinds: Mapping[str, type[Any]]) -> Iterable[str]:
    """Yield a table for each group of names with the same settings and defaults."""
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        groups.setdefault(settings_table(settings_of(kind)), []).append(name)
    for text, names in groups.items():
        yield f"Settings of {', '.join(f'`{name}`' for name in names)}:\n"
        yield text


def settings_table(settings: Mapping[str, Field[Any]]) -> str:
    """Return a table of settings with their defaults and meanings."""
    rows = ((f"`{key}`", default_cell(field), meaning(field)) for key, field in settings.items())
    return table(("setting", "default", "meaning"), rows)


def default_cell(field: Field[Any]) -> str:
    """Format the default of a setting."""
    fixed = field.default_factory is MISSING
    text = shown(field.default if fixed else field.default_factory())
    return f"`{text.lower() if text in ('True', 'False') else text}`" if text else "-"


def meaning(field: Field[Any]) -> str:
    """Return the help text of a setting, with its choices and the values that it requires."""
    stated = limits_of(field)
    choices = [f"`{name}`" for name in stated.choices or () if name]
    text = stated.help + (f": {', '.join(choices)}" if choices else "")
    return text + (f" (only with {' '.join(stated.only_with)})" if stated.only_with else "")


def rule_row(name: str) -> tuple[str, str, str]:
    """Return the row of a rule: name, label and supported nudgings."""
    rule = RULES[name]
    label = f"baseline: {rule.label}" if rule.baseline else rule.label
    return (
        f"`{name}`",
        label,
        "all" if len(rule.nudgings) == len(Nudging) else "all but holomorphic",
    )


def activation_table() -> str:
    """Return a table of activations, their layers and their spiking neurons."""
    rows = []
    for name, info in ACTIVATIONS.items():
        layers = " and ".join(key for key in ("hidden", "output") if getattr(info, key))
        spikes = "integrate-and-fire and graded" if activation(name).spiking else "graded"
        rows.append((f"`{name}`", f"`{info.formula}`", layers, spikes))
    return table(("name", "rate", "layers", "spikes"), rows)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
