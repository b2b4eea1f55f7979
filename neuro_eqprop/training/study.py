"""`Study`: the settings of a training run, and the TOML file that stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from neuro_eqprop.common.arrays import Shape, UnknownNameError
from neuro_eqprop.common.settings import check, convert, setting, settings_of
from neuro_eqprop.data import Dataset
from neuro_eqprop.data.split import check_ids
from neuro_eqprop.data.statistics import channel_statistics
from neuro_eqprop.files.read import read_toml
from neuro_eqprop.networks.architectures import feed_forward
from neuro_eqprop.networks.architectures.base import Architecture, ModelSettings
from neuro_eqprop.networks.architectures.mlp import LayeredSettings
from neuro_eqprop.networks.architectures.normalized import normalize_input
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.training.rules.base import ALL_NUDGINGS, UpdateRule
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import (
    ContrastiveSettings,
    Nudging,
    RuleSettings,
    TrainingSettings,
)

if TYPE_CHECKING:
    from neuro_eqprop.training.augment import Augmentation


def refuse_build(settings: ModelSettings, shape: Shape, classes: int) -> Network:
    """Raise ValueError: a network that was passed as an object cannot be built from settings."""
    raise ValueError("the network of model 'custom' is in model.safetensors of its run folder")


CUSTOM = Architecture("custom", "a Network object", lambda: ModelSettings("custom"), refuse_build)
"""Architecture in the study of a network that was passed to `train` as an object."""


def find_architecture(name: str) -> Architecture:
    """Return the architecture with a name."""
    return CUSTOM if name == CUSTOM.name else MODELS.find(name)


def refuse_update(*_: object) -> NoReturn:
    """Raise ValueError: a rule that was passed as a function cannot be found by name."""
    raise ValueError("rule 'custom' is a function of the user: pass it again as `rule`")


CUSTOM_RULE = UpdateRule(
    "custom",
    "a function passed to `train`",
    refuse_update,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    requires=refuse_update,
)
"""Rule in the study of a training whose rule was passed as a function."""


def find_rule(name: str) -> UpdateRule:
    """Return the update rule with a name."""
    return CUSTOM_RULE if name == CUSTOM_RULE.name else RULES.find(name)


def with_vocabulary(model: ModelSettings, data: Dataset) -> ModelSettings:
    """Fill in the vocabulary size of the data.

    Raises ValueError if the data are token ids and the model takes numbers.
    """
    takes_ids = "vocabulary" in settings_of(type(model))
    if data.vocabulary and not takes_ids:
        fitting = [n for n in MODELS if "vocabulary" in settings_of(type(MODELS[n].settings()))]
        raise ValueError(
            f"{data.name!r} has rows of token ids, and model {model.name!r} takes numbers; use "
            f"model {' or '.join(fitting)}"
        )
    if not takes_ids:
        return model
    given: int = model.vocabulary  # type: ignore[attr-defined]
    if given and not data.vocabulary:  # the settings say that these numbers are ids
        for part, split in data.parts.items():
            check_ids(split, f"{part} samples of {data.name!r}", given)
    if given and given < data.vocabulary:
        raise ValueError(
            f"vocabulary is {given}, but {data.name!r} has {data.vocabulary} token ids; leave it "
            f"out to use all"
        )
    return replace(model, vocabulary=given or data.vocabulary)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Study:
    """Settings of a training run; the defaults suit the embedded digits.

    `make_study` and `adapt` take settings by their flat names, without the name of the table.
    """

    dataset: str = setting("digits", "a .npz or .csv file, or a data set by name")
    seed: int = setting(
        0, "random seed of parameters, batches and augmentation", least=0, most=2**63 - 1
    )
    model: ModelSettings = field(default_factory=LayeredSettings)
    rule: RuleSettings = field(default_factory=lambda: ContrastiveSettings("hebbian"))
    training: TrainingSettings = field(default_factory=TrainingSettings)
    chosen: tuple[str, ...] = ()
    """Names of the settings that were derived and not stated, see `training.defaults`."""

    def __post_init__(self) -> None:
        check(self)
        hidden, depths = self.get("hidden"), find_architecture(self.model.name).depths
        if hidden is not None and len(hidden) not in depths:
            raise ValueError(
                f"model {self.model.name!r} does not take {len(hidden)} hidden sizes {hidden}; "
                f"it takes {depths[0]}" + (f" to {depths[-1]}" if len(depths) > 1 else "")
            )
        supported = find_rule(self.rule.name).nudgings
        if self.rule.nudging not in supported:
            raise ValueError(
                f"rule {self.rule.name!r} does not support nudging {self.rule.nudging!r}; use "
                f"nudging {', '.join(supported)}, or rule "
                f"{', '.join(n for n in RULES if self.rule.nudging in RULES[n].nudgings)}"
            )
        self._check_nudge()

    def _check_nudge(self) -> None:
        cost = Cost(self.training.cost or find_architecture(self.model.name).cost)
        if cost is Cost.SQUARED and self.rule.nudging != Nudging.POSITIVE.value:
            for key in ("beta", "beta_end"):
                strength = getattr(self.rule, key)
                if strength >= 1.0:
                    raise ValueError(
                        f"{key} is {strength}; a nudge of that size away from the target "
                        f"never settles; keep it below one, or use nudging 'positive'"
                    )

    def flat(self) -> dict[str, Any]:
        """Return all settings by their flat names; `model` and `rule` map to their names."""
        found = {key: getattr(self, key) for key in TOP}
        for table in TABLES:
            part = getattr(self, table)
            found |= {table: part.name} if table in NAMED else {}
            found |= {key: getattr(part, key) for key in settings_of(type(part))}
        return found

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return a setting by its flat name; `default` if the model and the rule do not have it."""
        return self.flat().get(key, default)

    def network(self, data: Dataset) -> Network:
        """Build the network of this study, sized for the data."""
        architecture = find_architecture(self.model.name)
        made = architecture.build(with_vocabulary(self.model, data), data.shape, data.classes)
        if self.training.normalize:
            ids = bool(data.vocabulary or self.get("vocabulary", 0))
            mean, deviation = channel_statistics(data, ids=ids)
            scaled = tuple(each / self.training.input_deviation for each in deviation)
            made = normalize_input(made, data.shape, mean, scaled)
        cost = self.training.cost
        made = replace(made, cost=Cost(cost)) if cost else made
        if not find_rule(self.rule.name).feed_forward:
            return made
        twin = feed_forward(made)
        usual = (0.0, getattr(architecture.settings(), "bound", 0.0))
        if "bound" not in self.chosen and self.get("bound", 0.0) not in usual:
            return twin
        # The default bound makes settling converge, which a feed-forward network does not need.
        free = tuple(replace(c, bound=None) for c in twin.connections)
        return replace(twin, connections=free)

    def augmentation(self, data: Dataset) -> tuple[Augmentation, ...]:
        """Return the augmentations of training samples, in the order in which they apply."""
        from neuro_eqprop.training import augment

        training, steps = self.training, []
        if training.shift:
            images = training.normalize and len(data.shape) == 3
            fill = channel_statistics(data)[0] if images else ()
            steps.append(augment.random_shift(training.shift, data.shape, fill))
        if training.flip:
            steps.append(augment.random_flip(data.shape))
        if training.word_dropout:
            vocabulary = data.vocabulary or self.get("vocabulary", 0)
            steps.append(augment.word_dropout(training.word_dropout, vocabulary))
        return tuple(steps)


TOP = ("dataset", "seed")
"""Settings of a study file outside its tables."""
CHOSEN = "chosen"
"""Key of a study file that names the settings that were derived."""
TABLES = ("model", "rule", "training")
"""Tables of a study file."""
NAMED = ("model", "rule")
"""Tables with a `name`, which determines their settings."""
RENAMED = {"optimiser": "optimizer", "fall": "lr_schedule", "normalise": "normalize"}
"""Settings by the names that they had until version 0.2, in files and calls of which they stay."""


def make_study(**settings: Any) -> Study:  # noqa: ANN401
    """Make a study from flat settings, as `make_study(model="conv", hidden=(16,), epochs=5)`."""
    return adapt(Study(), settings)


def adapt(study: Study, changes: Mapping[str, Any]) -> Study:
    """Return the study with some settings changed.

    Keys are flat names (`epochs`) or names with their table (`training.epochs`); values may be
    text, as on the command line. A change of the model also changes the rule and other settings to
    the defaults of the new model, unless they are among the changes or differ from their defaults
    in `study`; settings that the new model does not have are dropped.
    """
    given = flat_names(changes)
    model = change_model(study, given)
    suited = suited_defaults(study, model) | given
    rule = change_rule(study, model, suited)
    training = with_changes(study.training, suited)
    check_known(given, model, rule)
    top = {key: convert(key, given[key], getattr(study, key)) for key in TOP if key in given}
    chosen = tuple(name for name in study.chosen if name not in given)
    return replace(study, model=model, rule=rule, training=training, chosen=chosen, **top)


def flat_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested tables and dotted names, as `training.epochs`, to flat names."""
    found: dict[str, Any] = {}
    for key, value in changes.items():
        if key in TABLES and isinstance(value, Mapping):
            found |= flat_names({f"{key}.{inner}": each for inner, each in value.items()})
            continue
        table, dot, name = key.rpartition(".")
        name = RENAMED.get(name, name)
        if not dot:
            found[name] = value
        elif table not in TABLES:
            raise UnknownNameError("table of a study", table, TABLES)
        else:
            found[table if name == "name" and table in NAMED else name] = value
    return found


def with_changes(part: Any, given: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the settings of a table, updated by those in `given` that it has."""
    own = {key: given[key] for key in settings_of(type(part)) if key in given}
    return replace(
        part, **{key: convert(key, each, getattr(part, key)) for key, each in own.items()}
    )


def carry_over(part: Any, fresh: Any, given: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the settings `fresh`, updated by the non-default ones of `part` and by `given`."""
    defaults = type(part)(part.name)
    before = {
        key: getattr(part, key)
        for key in settings_of(type(part))
        if getattr(part, key) != getattr(defaults, key)
    }
    return with_changes(fresh, before | dict(given))


def change_model(study: Study, given: Mapping[str, Any]) -> ModelSettings:
    """Return the settings of the model after the changes."""
    name = str(given.get("model", study.model.name))
    if name == study.model.name:
        found = with_changes(study.model, given)
    else:
        found = carry_over(study.model, find_architecture(name).settings(), given)
    assert isinstance(found, ModelSettings)
    return found


def suited_defaults(study: Study, model: ModelSettings) -> dict[str, Any]:
    """Return the defaults of a new model, for the settings that have the default of the old one."""
    old, new = (find_architecture(name).training for name in (study.model.name, model.name))
    if model.name == study.model.name:
        return {}
    usual = Study().flat()
    return {
        key: new.get(key, usual[key])
        for key in {*old, *new}
        if study.get(key) == old.get(key, usual[key])
    }


def change_rule(study: Study, model: ModelSettings, given: Mapping[str, Any]) -> RuleSettings:
    """Return the settings of the rule after the changes."""
    own = find_architecture(study.model.name).rule_for(study.model) == study.rule.name
    name = str(given.get("rule", ""))
    name = name or (find_architecture(model.name).rule_for(model) if own else study.rule.name)
    if name == study.rule.name:
        found = with_changes(study.rule, given)
    else:
        found = carry_over(study.rule, find_rule(name).settings(name), given)
    assert isinstance(found, RuleSettings)
    return found


def check_known(given: Mapping[str, Any], model: ModelSettings, rule: RuleSettings) -> None:
    """Raise ValueError for a setting that the model and the rule do not have."""
    known = {*TOP, *NAMED, *settings_of(TrainingSettings)}
    known |= {*settings_of(type(model)), *settings_of(type(rule))}
    chosen = {"model": model.name, "rule": rule.name}
    for key, value in given.items():
        if key in known:
            continue
        others = {
            "model": [name for name in MODELS if key in settings_of(type(MODELS[name].settings()))],
            "rule": [name for name in RULES if key in settings_of(RULES[name].settings)],
        }
        for table, names in others.items():
            if names:
                raise ValueError(
                    f"{table} {chosen[table]!r} has no setting {key!r} (here {value!r}), which "
                    f"belongs to {', '.join(names)}; leave it out"
                )
        raise UnknownNameError("setting", key, known)


VERSION_01 = {
    "activation": ("hard_sigmoid", "tanh"),
    "height": (4.0,),
    "output": ("hard_sigmoid", "linear"),
    "bound": (0.0,),
    "feedback": (1.0,),
    "symmetric": (True,),
    "stem": (0,),
    "kernel": (5,),
    "memory": (0,),
    "attention": ("linear",),
    "heads": (4,),
    "attention_scale": (0.15,),
    "attention_sharpness": (1.0,),
    "attention_bound": (1.2,),
    "patch": (7,),
    "query": (False,),
    "beta_end": (0.0,),
    "points": (4,),
    "damping": (1.0,),
    "anderson": (0,),
    "order": ("sequential",),
    "tolerance": (0.0,),
}
"""Values that version 0.1 wrote for settings that the model or the rule does not use."""


def without_unused(written: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the settings of a flat file of version 0.1 that its model and rule do not use."""
    model = MODELS.find(str(written.get("model", "layered"))).settings()
    rule = RULES.find(str(written.get("rule", "hebbian"))).settings
    used = {**settings_of(type(model)), **settings_of(rule), **settings_of(TrainingSettings)}
    return {
        key: value
        for key, value in written.items()
        if not (key in VERSION_01 and key not in used and value in VERSION_01[key])
        # In version 0.1, a bound of zero meant the default of the model.
        and not (key == "bound" and value == 0.0 and getattr(model, "bound", 0.0))
    }


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings that a TOML file states, by flat name; tables may be missing."""
    written = read_toml(path)
    written.pop("learn", None)  # settings of on-chip learning, see `on_chip_config`
    try:
        return flat_names(written if nested(written) else without_unused(written))
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read(path: Path) -> Study:
    """Read a study from a TOML file, with tables or flat as in version 0.1."""
    written = read_settings(path)
    chosen = written.pop(CHOSEN, [])
    try:
        study = adapt(Study(), written)
        return replace(study, chosen=names_of_settings(chosen, study))
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def names_of_settings(names: Any, study: Study) -> tuple[str, ...]:  # noqa: ANN401
    """The names of settings of a study; ValueError for anything else."""
    known = study.flat()
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name in known for name in names
    ):
        raise ValueError(f"{CHOSEN} is {names!r}; it lists names of settings")
    return tuple(names)


def nested(written: Mapping[str, Any]) -> bool:
    """Return whether a study file has tables."""
    return any(isinstance(value, Mapping) for value in written.values())


def write(study: Study) -> str:
    """Format a study as TOML."""
    top = {key: getattr(study, key) for key in TOP}
    parts = [toml_lines(top | ({CHOSEN: study.chosen} if study.chosen else {}))]
    parts += [f"[{table}]\n{toml_lines(asdict(getattr(study, table)))}" for table in TABLES]
    return "\n".join(parts)


def toml_lines(settings: Mapping[str, Any]) -> str:
    """Format settings as lines of TOML."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in settings.items())


def toml_value(value: Any) -> str:  # noqa: ANN401
    """Format a value as TOML."""
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(list(value)) if isinstance(value, tuple) else repr(value)
