"""Settings of learning on a chip: the table [learn] of a study file, and its reader and writer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.backends.registry import BACKENDS, learner_names
from neuro_eqprop.experiments import config as study_config
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.run_folder import STUDY
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.settings import convert
from neuro_eqprop.spiking.codes import CODES, Code, Coding, find_code, learning_codes
from neuro_eqprop.spiking.make_plastic import PlasticityConfig
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths, is_centered
from neuro_eqprop.spiking.plasticity import (
    Arithmetic,
    IntegerArithmetic,
    LearningRule,
    engine_for,
)
from neuro_eqprop.spiking.rounding import power_above

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RATES = "rate"
"""The value of `on` with which the rate network learns the same samples, as a baseline."""
DEFAULTS = {"batch": 1, "optimiser": "sgd", "learning_rate": 0.05, "epochs": 10}
"""Defaults of a study that learns on a chip, where they differ from those of training."""
DT = 1e-3
"""Seconds of a step; results do not depend on it."""


@dataclass(frozen=True, slots=True)
class OnChipConfig:
    """Settings of learning on a chip beyond those of a study: the table [learn] of study.toml.

    Times are in steps of the simulator, weights and thresholds in units of the rate network.
    """

    on: str = "emulator"
    """The simulator that learns, or `rate` for the baseline of rates."""
    code: str = "graded"
    """How units send their rates: `graded` messages or binary spikes (`rate`)."""
    bits: int = 0
    """Bits of weights in fixed point, with traces of 7 bits; zero for floating point."""
    engine: bool = False
    """Round as Lava's learning engine in fixed point does, with weights of 9 bits."""
    free: int = 0
    """Steps of the free phase (one-sided nudging: before its window); zero for the code's own."""
    settle: int = 0
    """Steps of a nudged phase before its window; zero for the code's own."""
    window: int = 0
    """Last steps of a phase, in which tags accumulate; zero for the code's own."""
    tau: float = 8.0
    """Steps in which the activity trace of a spiking unit decays to 1/e."""
    theta: float = 2.0**-8
    """Threshold of graded units: messages are multiples of it."""
    limit: float = 0.0
    """Weights are clipped to [-limit, limit]; zero for 4, or 1 in fixed point."""
    bias: float = 0.0
    """Initial bias of every unit."""
    samples: int = 0
    """Use only the first N training samples; zero for all."""
    run_on: bool = False
    """Keep the state of neurons from one sample to the next."""
    tasks: int = 1
    """Split the classes into N tasks, learned one after another for all epochs each."""
    weight_noise: float = 0.0
    """Standard deviation of the relative gain of each synapse."""
    dead: float = 0.0
    """Fraction of hidden units that never fire."""
    mismatch: float = 0.0
    """Standard deviation of thresholds, relative to their value."""
    asymmetric: bool = False
    """Round forward and feedback weights independently."""

    def __post_init__(self) -> None:
        if self.on != RATES and self.on not in BACKENDS:
            raise UnknownNameError("simulator that learns", self.on, (RATES, *learner_names()))
        if self.code not in CODES:
            raise UnknownNameError("code", self.code, learning_codes())
        for key, steps in phase_steps(self.code).items():
            if not getattr(self, key):
                object.__setattr__(self, key, steps)
        for key in ("free", "settle", "window", "tasks"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} is {getattr(self, key)}; it must be above zero")
        if self.bits and not 2 <= self.bits <= 16:
            raise ValueError(
                f"bits is {self.bits}; weights have 2 to 16 bits, or 0 for floating point"
            )
        if min(self.samples, self.limit) < 0:
            raise ValueError("samples and limit cannot be negative")
        flawed = self.weight_noise or self.dead or self.mismatch or self.asymmetric
        if self.on == RATES and (self.fixed_point or flawed or self.run_on):
            raise ValueError(
                "rates have no bits, no nonidealities and no state to keep; use on = emulator"
            )

    @property
    def fixed_point(self) -> bool:
        """Whether weights are integers times a power of two."""
        return bool(self.bits) or self.engine

    @property
    def bound(self) -> float:
        """The largest absolute weight; a power of two in fixed point."""
        limit = self.limit or (1.0 if self.fixed_point else 4.0)
        return power_above(limit) if self.fixed_point else limit

    @property
    def coding(self) -> Coding:
        """The code with its threshold."""
        return Coding(find_code(self.code), theta=self.theta)

    def schedule(self, study: Study) -> Schedule:
        """The phases of a sample."""
        lengths = PhaseLengths(self.free, self.settle, self.window)
        return lengths.schedule(beta=study.rule.beta, centered=is_centered(study.rule.nudging))

    def arithmetic(self, study: Study) -> Arithmetic | None:
        """Integer arithmetic, or None for floating point."""
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
        """Code, learning rule, weight limit and nonidealities of the plastic network."""
        rule = LearningRule(
            self.schedule(study),
            self.tau,
            batch=study.training.batch,
            fresh=not self.run_on,
            numbers=self.arithmetic(study),
        )
        flaws = Nonidealities(
            self.weight_noise, self.dead, self.mismatch, self.asymmetric, study.seed
        )
        return PlasticityConfig(self.coding, rule, self.bound, DT, flaws)


def adapt(config: OnChipConfig, changes: Mapping[str, Any]) -> OnChipConfig:
    """The settings with some changed; values may be text from the command line."""
    known = {f.name: getattr(config, f.name) for f in fields(config)}
    clean: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            raise UnknownNameError("setting of [learn]", key, known)
        like = known[key]
        clean[key] = value if isinstance(like, bool) else convert(key, value, like)
        if isinstance(like, bool) and not isinstance(value, bool):
            raise ValueError(f"setting {key!r} is true or false, not {value!r}")
    return replace(config, **clean)


def phase_steps(code: str, steps: int | None = None) -> dict[str, int]:
    """The settings free, settle and window of a code whose nudged phases have `steps` steps."""
    policy = find_code(code).learning or Code.RATE.learning
    assert policy is not None
    return asdict(policy.lengths(steps))


def write(study: Study, config: OnChipConfig) -> str:
    """Both as TOML."""
    lines = ["", "[learn]"]
    for key, value in asdict(config).items():
        text = f'"{value}"' if isinstance(value, str) else repr(value)
        lines.append(f"{key} = {text.lower() if isinstance(value, bool) else text}")
    return study_config.write(study) + "\n".join(lines) + "\n"


def read_table(path: Path) -> Mapping[str, Any] | None:
    """The table [learn] of a study file, if it has one."""
    try:
        table = tomllib.loads(path.read_text()).get("learn")
    except FileNotFoundError:
        raise ValueError(f"there is no study file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a study: {error}") from error
    if table is not None and not isinstance(table, dict):
        raise ValueError(f"{path}: 'learn' is a table, not {table!r}")
    return table


def read(path: Path) -> tuple[Study, OnChipConfig]:
    """Both from a TOML file; defaults for the second if it has no table [learn]."""
    table = read_table(path)
    study = study_config.read(path)
    if table is None:
        return study, OnChipConfig()
    try:
        return study, adapt(OnChipConfig(), table)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def was_learned_on_chip(out: Path) -> bool:
    """Whether the run in a folder was started by `learn`."""
    return (out / STUDY).exists() and read_table(out / STUDY) is not None
