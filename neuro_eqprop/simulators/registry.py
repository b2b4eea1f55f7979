"""All backends by name, those of other packages included.

Another package adds a backend with an entry point in the group `neuro_eqprop.backends` that names
a `BackendInfo`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from neuro_eqprop.common.arrays import UnknownNameError, type_name
from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.simulators.base import (
    Backend,
    BackendError,
    BackendInfo,
    Feature,
    needed_features,
)
from neuro_eqprop.simulators.learning import Learner
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

BACKENDS = Registry(
    "backend",
    BackendInfo,
    {
        "reference": "neuro_eqprop.simulators.reference:BACKEND",
        "emulator": "neuro_eqprop.simulators.emulator:BACKEND",
        "lava": "neuro_eqprop.simulators.lava:BACKEND",
        "lava-fused": "neuro_eqprop.simulators.lava:FUSED",
        "lava-stock": "neuro_eqprop.simulators.lava:STOCK",
        "brian2": "neuro_eqprop.simulators.brian2:BACKEND",
        "biology": "neuro_eqprop.simulators.biology:BIOLOGY",
        "brian2-biology": "neuro_eqprop.simulators.brian2:BIOLOGY",
        "snntorch": "neuro_eqprop.simulators.snntorch:BACKEND",
    },
    "neuro_eqprop.backends",
)


def load_class(info: BackendInfo, place: str) -> Any:  # noqa: ANN401
    """The class of a backend at "module:attribute"."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        needed = [f"{name}{limit}" for name, limit in info.requires.items()]
        raise BackendError(
            f"{info.label} cannot be imported ({error}); install it with: "
            f"{info.install or how_to_install(needed)}"
        ) from error


def load_backend(backend: str | Backend) -> Backend:
    """Load a backend by name; what it needs is imported now, not before.

    Parameters
    ----------
    backend : str or Backend
        "reference", "emulator", "lava", "brian2", "snntorch", ... An object is returned unchanged.

    Returns
    -------
    Backend
        Its `run` takes a spiking network, a stimulus and a schedule.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.load_backend("reference").name
    'reference'
    """
    if not isinstance(backend, str):
        if not hasattr(backend, "run"):
            raise TypeError(
                f"a backend is a name or an object with `run`, not {type_name(backend)}"
            )
        return backend
    info = BACKENDS.find(backend)
    return cast(Backend, load_class(info, info.simulator)())


def learner_names() -> list[str]:
    """The names of the backends that can learn."""
    return [name for name, info in BACKENDS.loadable().items() if info.learner]


def load_learner(name: str | Learner) -> Learner:
    """The learner of a backend; raises BackendError, with the reason, if it cannot learn.

    An object is returned unchanged.
    """
    if not isinstance(name, str):
        if not hasattr(name, "learn"):
            raise TypeError(f"a learner is a name or an object with `learn`, not {type_name(name)}")
        return name
    known = learner_names()
    if name not in BACKENDS:
        raise UnknownNameError("simulator that learns", name, known)
    info = BACKENDS[name]
    if not info.learner:
        raise BackendError(f"{name} cannot learn: {info.cannot_learn}; use {' or '.join(known)}")
    return cast(Learner, load_class(info, info.learner)())


def with_features(features: Iterable[Feature]) -> list[str]:
    """The names of the backends that have all these features."""
    wanted = list(features)
    return [
        name
        for name, info in BACKENDS.loadable().items()
        if all(each in info.support for each in wanted)
    ]


def check_run(backend: Backend, network: SpikingNetwork, stimulus: Stimulus) -> None:
    """Raise an error for a network or stimulus that the backend cannot run."""
    needed = needed_features(network, stimulus)
    for feature in needed:
        if feature not in backend.support:
            raise BackendError(
                f"{backend.name} cannot run a network with {feature.value}: "
                f"{backend.support.reasons[feature]}; use {' or '.join(with_features(needed))}"
            )
    stimulus.check(network)


def unavailable(info: BackendInfo) -> str | None:
    """Why a backend cannot run on this machine, or None if it can."""
    if info.python_variable and os.environ.get(info.python_variable):
        return None
    missing = [f"{name}{limit}" for name, limit in info.requires.items() if not installed(name)]
    if not missing:
        return None
    return f"not installed: {info.install or how_to_install(missing)}"


def how_to_install(packages: Iterable[str]) -> str:
    """The call of pip that installs packages."""
    return f"pip install {' '.join(map(shlex.quote, packages))}"


@cache  # reading the metadata of a distribution takes milliseconds
def installed(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
