"""Settings of on-chip learning, and the table [learn] of a study file that stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from neuro_eqprop.common.arrays import ArgumentError, UnknownNameError
from neuro_eqprop.common.settings import change, check, convert, setting
from neuro_eqprop.dynamics.schedules import DT, Schedule
from neuro_eqprop.files.read import FileFormatError, read_toml
from neuro_eqprop.runs.run_folder import STUDY
from neuro_eqprop.simulators.biology.options import make_biology, parse_options
from neuro_eqprop.simulators.biology.settings import CONTINUOUS, Biology, phase_lengths
from neuro_eqprop.simulators.registry import BACKENDS, learner_names
from neuro_eqprop.spiking.arithmetic import power_above
from neuro_eqprop.spiking.codes import CODES, Code, Coding, find_code, learning_codes
from neuro_eqprop.spiking.make_plastic import PlasticityConfig
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths, PhasePolicy, is_centered
from neuro_eqprop.spiking.plasticity import (
    Arithmetic,
    IntegerArithmetic,
    LearningRule,
    engine_for,
)
from neuro_eqprop.training import study as study_config
from neuro_eqprop.training.study import Study


class SettingsError(ArgumentError):
    """A setting has an invalid value."""


RATES = "rate"
"""Value of `on` for the baseline: the rate network learns the same samples."""
EPOCHS = 10
DEFAULTS = {"batch": 1, "optimizer": "sgd", "learning_rate": 0.05, "epochs": EPOCHS}
"""Defaults of `learn` that differ from those of a study."""
MANY_SAMPLES = 5000
"""Training samples from which on `learn` has the defaults of `MANY`."""
MANY = {"learning_rate": 0.02}
"""Defaults for many samples, each with a commit: the rate at which MNIST is learned best."""
MANY_FIXED = {"limit": 0.5, "margin": 0.1}
"""Those in fixed point: a finer unit, and no nudge where nothing is left to learn."""
MANY_SPIKES = {"free": 32, "settle": 16, "window": 48, "tau": 4.0, "margin": 0.1}
"""Those of code rate: longer windows, which count more spikes."""
DEEP_FEEDBACK = 0.25
"""Default feedback of several hidden layers in floating point; with 1 they hardly learn.

The learning rules of Lava scale updates by integers below 8 times powers of two; a feedback that is
a power of two leads to such a scale.
"""


@dataclass(frozen=True)
class OnChipConfig:
    """Settings of on-chip learning beside those of a study: the table [learn] of study.toml.

    Times are in simulation steps, weights and biases in the units of the rate network.
    """

    on: str = setting("emulator", "simulator that learns, or rate for the rate network as baseline")
    code: str = setting("graded", "spike code of the units")
    bits: int = setting(
        0, "bits of weights in fixed point, 2 to 16, with traces of 7 bits; 0 for floating point"
    )
    engine: bool = setting(
        False, "round as Lava's learning engine in fixed point does, with weights of 9 bits"
    )
    free: int = setting(
        0, "steps of the free phase, before its window if nudging is one-sided; 0 for the code's"
    )
    settle: int = setting(0, "steps of a nudged phase before its window; 0 for the code's")
    window: int = setting(0, "last steps of a phase, in which tags accumulate; 0 for the code's")
    tau: float = setting(8.0, "steps in which the trace of a spiking unit decays to 1/e", above=0)
    theta: float = setting(2.0**-8, "graded messages are multiples of this threshold", above=0)
    limit: float = setting(
        0.0, "weights are clipped to [-limit, limit]; 0 for 4, or 1 in fixed point", least=0
    )
    bias: float = setting(0.0, "initial bias of every unit")
    margin: float = setting(
        0.0,
        "leave out the nudged phases of a sample whose outputs are all within this of their "
        "targets; 0 to nudge every sample",
        least=0,
    )
    samples: int = setting(0, "use only the first N training samples; 0 for all", least=0)
    repeats: int = setting(
        1, "show each sample N times in a row, with other random numbers, to one commit", least=1
    )
    rhythm: bool = setting(
        False, "nudge by an oscillation of beta, without windows, in place of two nudged phases"
    )
    run_on: bool = setting(False, "keep the state of neurons from one sample to the next")
    tasks: int = setting(1, "split the classes into N tasks, learned one after another", least=1)
    weight_noise: float = setting(
        0.0, "standard deviation of the gain of each synapse, relative to its weight", least=0
    )
    dead: float = setting(0.0, "fraction of hidden units that never fire", least=0, most=1)
    mismatch: float = setting(0.0, "standard deviation of thresholds, relative to them", least=0)
    asymmetric: bool = setting(False, "round forward and feedback weights independently")
    biology: str = setting("", "options of biology, as tau_m=20ms,noise=0.1,neuron=adex")

    def __post_init__(self) -> None:
        if self.on != RATES and self.on not in BACKENDS:
            raise UnknownNameError("simulator that learns", self.on, (RATES, *learner_names()))
        if self.code not in CODES:
            raise UnknownNameError("code", self.code, learning_codes())
        if self.biology and self.on not in CONTINUOUS:
            raise ValueError(
                f"biology is {self.biology!r}, options of {CONTINUOUS[0]}; use it as on"
            )
        for key, steps in phase_steps(self.code, None, self.on, self.biology).items():
            if not getattr(self, key):
                object.__setattr__(self, key, steps)
            if getattr(self, key) < 1:
                raise ValueError(f"{key} is {getattr(self, key)}; it must be at least 1")
        check(self)
        if self.bits and not 2 <= self.bits <= 16:
            raise ValueError(
                f"bits is {self.bits}; weights have 2 to 16 bits, or 0 for floating point"
            )
        nonideal = self.weight_noise or self.dead or self.mismatch or self.asymmetric
        alone = self.run_on or self.margin or self.rhythm
        if self.on == RATES and (self.fixed_point or nonideal or alone):
            raise ValueError(
                "rates have no bits, no nonidealities, no margin, no rhythm and no state to keep; "
                "learn on a simulator, such as the emulator"
            )

    @property
    def continuous(self) -> Biology:
        """The parameters of a simulator in continuous time."""
        return make_biology(**parse_options(self.biology))

    @property
    def fixed_point(self) -> bool:
        """Whether weights are integers times a power of two."""
        return bool(self.bits) or self.engine

    @property
    def bound(self) -> float:
        """Largest absolute weight; a power of two in fixed point."""
        limit = self.limit or (1.0 if self.fixed_point else 4.0)
        return power_above(limit) if self.fixed_point else limit

    @property
    def coding(self) -> Coding:
        """Spike code with its threshold."""
        return Coding(find_code(self.code), theta=self.theta)

    def schedule(self, study: Study) -> Schedule:
        """Return the phases of a sample."""
        lengths = PhaseLengths(self.free, self.settle, self.window)
        return lengths.schedule(beta=study.rule.beta, centered=is_centered(study.rule.nudging))

    def arithmetic(self, study: Study) -> Arithmetic | None:
        """Return the integer arithmetic, or None for floating point."""
        if self.engine:
            gap = study.rule.beta * (2 if is_centered(study.rule.nudging) else 1)
            return engine_for(
                study.training.learning_rate,
                gap=gap,
                window=self.window,
                scale=self.bound / 256,
                seed=study.seed,
            )
        return IntegerArithmetic(study.seed, self.bits) if self.bits else None

    def plasticity(self, study: Study) -> PlasticityConfig:
        """Return code, learning rule, weight limit and nonidealities of the plastic network."""
        rule = LearningRule(
            self.schedule(study),
            self.tau,
            batch=study.training.batch * self.repeats,
            fresh=not self.run_on,
            numbers=self.arithmetic(study),
            margin=self.margin,
            rhythm=self.rhythm,
        )
        flaws = Nonidealities(
            self.weight_noise, self.dead, self.mismatch, self.asymmetric, study.seed
        )
        return PlasticityConfig(self.coding, rule, self.bound, DT, flaws)


def make_config(given: Mapping[str, Any], steps: int | None = None) -> OnChipConfig:
    """Make the settings from those given and defaults.

    `steps`, the length of a nudged phase, sets the defaults of free, settle and window.
    """
    code, on = given.get("code", OnChipConfig.code), given.get("on", OnChipConfig.on)
    changes = {**phase_steps(code, steps, on, given.get("biology", "")), **given}
    return change(OnChipConfig(code=code), changes, "setting of [learn]")


def learning_settings(given: Mapping[str, Any], samples: int = 0) -> tuple[Study, OnChipConfig]:
    """Make a study and the settings of [learn] from flat settings, with the defaults of `learn`.

    `samples` is the number of training samples; from `MANY_SAMPLES` on, defaults are those of
    `MANY`, as far as `batch`, phases and nudging are the default ones.

    `steps`, the length of a nudged phase, sets the defaults of free, settle and window. Settings
    that are None have their default. Several hidden layers have a feedback of `DEEP_FEEDBACK` by
    default, and more steps (`default_steps`).
    """
    given = {key: value for key, value in given.items() if value is not None}
    own = {f.name: given.pop(f.name) for f in fields(OnChipConfig) if f.name in given}
    steps = given.pop("steps", None)
    try:
        steps = None if steps is None else convert("steps", steps, 0)
        study = study_config.adapt(Study(), {**DEFAULTS, **given})
        samples = min(samples, int(own.get("samples") or samples))
        if samples >= MANY_SAMPLES and study.training.batch == 1 and hidden_layers(study) == 1:
            study = study_config.adapt(study, {**MANY, **given})
            own = {**many_samples(own, study, steps), **own}
        config = make_config(own, default_steps(study, own) if steps is None else steps)
        if hidden_layers(study) > 1 and not config.fixed_point:
            study = study_config.adapt(study, {"feedback": DEEP_FEEDBACK, **given})
        return study, config
    except UnknownNameError as error:
        if error.kind != "setting":
            raise
        known = {*error.known, *(f.name for f in fields(OnChipConfig)), "steps"}
        raise UnknownNameError("setting", error.name, known) from None
    except ValueError as error:
        raise SettingsError(str(error)) from error


def many_samples(own: Mapping[str, Any], study: Study, steps: int | None) -> dict[str, Any]:
    """Return the defaults of [learn] for many samples; `own` are those that are stated."""
    if own.get("on") == RATES:
        return {}
    found = dict(MANY_FIXED) if own.get("bits") or own.get("engine") else {}
    plain = steps is None and not {"free", "settle", "window"} & set(own)
    if own.get("code") == Code.RATE.name and plain and is_centered(study.rule.nudging):
        found |= MANY_SPIKES
    return found


def hidden_layers(study: Study) -> int:
    """Return the number of hidden layers between which a network has feedback."""
    return len(study.get("hidden")) if study.get("feedback", None) is not None else 1


def default_steps(study: Study, own: Mapping[str, Any]) -> int:
    """Return the default length of a nudged phase, twice as long for each further layer.

    `own` are settings of [learn].
    """
    code, on = own.get("code", OnChipConfig.code), own.get("on", OnChipConfig.on)
    lengths = phase_steps(code, None, on, own.get("biology", ""))
    return int((lengths["settle"] + lengths["window"]) * 2 ** (hidden_layers(study) - 1))


def flat_settings(study: Study, config: OnChipConfig) -> dict[str, Any]:
    """Return all settings by name, as `learning_settings` takes them."""
    return study.flat() | asdict(config)


def phase_steps(
    code: str, steps: int | None = None, on: str = "emulator", biology: str = ""
) -> dict[str, int]:
    """Return free, settle and window of nudged phases of `steps` steps.

    The code divides them; in continuous time, the time constants of the biology do.
    """
    if on in CONTINUOUS:
        return asdict(phase_lengths(make_biology(**parse_options(biology)), steps))
    return asdict(phase_policy(code).lengths(steps))


def phase_policy(code: str) -> PhasePolicy:
    """Return how a code divides the phases; that of code rate for one that cannot learn."""
    policy = find_code(code).learning or Code.RATE.learning
    assert policy is not None
    return policy


def write(study: Study, config: OnChipConfig) -> str:
    """Format a study and its table [learn] as TOML."""
    return f"{study_config.write(study)}\n[learn]\n{study_config.toml_lines(asdict(config))}"


def read_table(path: Path) -> Mapping[str, Any] | None:
    """Read the table [learn] of a study file; None if it has none."""
    table = read_toml(path).get("learn")
    if table is not None and not isinstance(table, dict):
        raise FileFormatError(f"{path}: learn: {table!r} is not a table")
    return table


def read(path: Path) -> tuple[Study, OnChipConfig]:
    """Read a study and its table [learn] from a TOML file; without the table, its defaults."""
    table = read_table(path) or {}
    study = study_config.read(path)
    try:
        return study, make_config(table)
    except UnknownNameError:
        raise
    except (ValueError, TypeError, OverflowError) as error:  # a list in the place of a name
        raise ValueError(f"{path}: learn: {error}") from error


def was_learned_on_chip(out: Path) -> bool:
    """Return whether the run in a folder was made by `learn`."""
    return (out / STUDY).exists() and read_table(out / STUDY) is not None
