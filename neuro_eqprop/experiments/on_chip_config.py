"""How a run learns on a chip: the table `[learn]` of its study, beside what training has too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.backends.learning import CANNOT, LEARNERS
from neuro_eqprop.experiments import config
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.run_folder import STUDY
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.lower import Code, Coding
from neuro_eqprop.spiking.make_plastic import LEARNING_CODES, PlasticityConfig
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.plasticity import (
    Arithmetic,
    IntegerArithmetic,
    LearningRule,
    engine_for,
    episode,
)
from neuro_eqprop.spiking.rounding import power_above

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RATES = "rate"
"""Where the same lessons are learned with rates, for comparison."""
DEFAULTS = {"batch": 1, "optimiser": "sgd", "learning_rate": 0.05, "epochs": 10}
"""What a study of learning starts from; there is no optimiser, and no momentum."""
STEPS = {"graded": 16, "rate": 64}
"""Of a nudged phase, by code, unless they are given."""
DT = 1e-3


@dataclass(frozen=True, slots=True)
class OnChipConfig:
    """What learning on a chip has beyond the settings of a study."""

    on: str = "emulator"
    code: str = "graded"
    bits: int = 0
    """Of weights; zero for real numbers. Traces then have seven."""
    engine: bool = False
    """Whether whole numbers are rounded as Lava's engine does; weights have nine bits then."""
    free: int = 0
    """Steps of the free phase, with one-sided nudging before its window; zero for the code's."""
    settle: int = 0
    """Steps of a nudged phase before its window; zero for the code's."""
    window: int = 0
    """Steps in which tags gather; zero for the code's."""
    tau: float = 8.0
    """Steps in which the trace of a spiking unit falls to 1/e."""
    theta: float = 2.0**-8
    """Graded messages are multiples of this."""
    limit: float = 0.0
    """The largest size of a weight; zero for 4, in whole numbers 1."""
    bias: float = 0.0
    """That every neuron starts with."""
    samples: int = 0
    """So many of the training samples, the first ones; zero for all."""
    run_on: bool = False
    """Whether neurons keep their state from a lesson to the next."""
    tasks: int = 1
    """Classes come in so many parts one after the other, each for all epochs."""
    weight_noise: float = 0.0
    dead: float = 0.0
    mismatch: float = 0.0
    asymmetric: bool = False

    def __post_init__(self) -> None:
        if self.on != RATES and self.on not in {*LEARNERS, *CANNOT}:
            raise UnknownNameError("simulator that learns", self.on, (RATES, *LEARNERS))
        known = [code.value for code in Code]
        if self.code not in known:
            raise UnknownNameError("code", self.code, [c.value for c in LEARNING_CODES])
        for key, usual in phase_steps(STEPS.get(self.code, 16), self.code).items():
            if not getattr(self, key):
                object.__setattr__(self, key, usual)
        for key in ("free", "settle", "window", "tasks"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} is {getattr(self, key)}; it must be above zero")
        if self.bits and not 2 <= self.bits <= 16:
            raise ValueError(f"bits is {self.bits}; weights have 2 to 16 bits, or 0 for real ones")
        if min(self.samples, self.limit) < 0:
            raise ValueError("samples and limit cannot be negative")
        flawed = self.weight_noise or self.dead or self.mismatch or self.asymmetric
        if self.on == RATES and (self.whole or flawed or self.run_on):
            raise ValueError("rates have no bits, no flaws and no state to keep; use --on emulator")

    @property
    def whole(self) -> bool:
        """Whether weights are whole numbers."""
        return bool(self.bits) or self.engine

    @property
    def bound(self) -> float:
        """The largest size of a weight."""
        limit = self.limit or (1.0 if self.whole else 4.0)
        return power_above(limit) if self.whole else limit

    @property
    def coding(self) -> Coding:
        """How rates become spikes."""
        return Coding(Code(self.code), theta=self.theta)

    def schedule(self, study: Study) -> Schedule:
        """The phases of a lesson."""
        return episode(
            beta=study.beta,
            centered=centered(study),
            free=self.free,
            settle=self.settle,
            window=self.window,
        )

    def numbers(self, study: Study) -> Arithmetic | None:
        """Real or whole ones."""
        if self.engine:
            gap = study.beta * (2 if centered(study) else 1)
            return engine_for(
                study.learning_rate,
                gap=gap,
                window=self.window,
                scale=self.bound / 256,
                seed=study.seed,
            )
        return IntegerArithmetic(study.seed, self.bits) if self.bits else None

    def sprout(self, study: Study) -> PlasticityConfig:
        """How the network of the study becomes plastic."""
        rule = LearningRule(
            self.schedule(study),
            self.tau,
            batch=study.batch,
            fresh=not self.run_on,
            numbers=self.numbers(study),
        )
        flaws = Nonidealities(
            self.weight_noise, self.dead, self.mismatch, self.asymmetric, study.seed
        )
        return PlasticityConfig(self.coding, rule, self.bound, DT, flaws)


def centered(study: Study) -> bool:
    """Whether both directions of the nudge are compared; others than these two are refused."""
    if study.nudging not in ("positive", "centered"):
        raise ValueError(
            f"nudging {study.nudging!r} has no phases on a chip; use positive or centered"
        )
    return study.nudging == "centered"


def adapt(learning: OnChipConfig, changes: Mapping[str, Any]) -> OnChipConfig:
    """The settings with some changed; values may be text, as from the command line."""
    known = {f.name: getattr(learning, f.name) for f in fields(learning)}
    clean: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            raise UnknownNameError("setting of [learn]", key, known)
        like = known[key]
        clean[key] = value if isinstance(like, bool) else config.convert(key, value, like)
        if isinstance(like, bool) and not isinstance(value, bool):
            raise ValueError(f"setting {key!r} is true or false, not {value!r}")
    return replace(learning, **clean)


def phase_steps(steps: int, code: str) -> dict[str, int]:
    """Phases of so many steps: graded units need a short window, spikes half of the phase."""
    if steps < 2:
        raise ValueError(f"phases of {steps} steps have no room to settle and to learn")
    window = max(1, steps // 4) if code == Code.GRADED.value else steps // 2
    free = steps if code == Code.GRADED.value else steps - window
    return {"free": free, "settle": steps - window, "window": window}


def write(study: Study, learning: OnChipConfig) -> str:
    """Both as TOML."""
    lines = ["", "[learn]"]
    for key, value in asdict(learning).items():
        text = f'"{value}"' if isinstance(value, str) else repr(value)
        lines.append(f"{key} = {text.lower() if isinstance(value, bool) else text}")
    return config.write(study) + "\n".join(lines) + "\n"


def table(path: Path) -> Mapping[str, Any] | None:
    """The table [learn] of a study file, if it has one."""
    try:
        found = tomllib.loads(path.read_text()).get("learn")
    except FileNotFoundError:
        raise ValueError(f"there is no study file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a study: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{path}: 'learn' is a table, not {found!r}")
    return found


def read(path: Path) -> tuple[Study, OnChipConfig]:
    """Both from a TOML file."""
    told = table(path)
    study = config.read(path)
    if told is None:
        return study, OnChipConfig()
    try:
        return study, adapt(OnChipConfig(), told)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def was_learned_on_chip(out: Path) -> bool:
    """Whether the run in a folder was begun by learning on a chip."""
    return (out / STUDY).exists() and table(out / STUDY) is not None
