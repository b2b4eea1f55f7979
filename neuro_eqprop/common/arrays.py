"""Array types, name look-up and the cosine, shared by all modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from enum import Enum
from inspect import signature
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Shape: TypeAlias = tuple[int, ...]
K = TypeVar("K")
T = TypeVar("T")
M = TypeVar("M", bound=Enum)


def cosine(a: Array, b: Array, *, floor: float = 0.0) -> float | None:
    """The cosine of the angle between two arrays, a . b / (|a| |b|).

    Rounding may take it beyond [-1, 1] by some 1e-16.

    Parameters
    ----------
    a, b : arrays of equal size
    floor : float
        Norms up to this value count as zero, for arrays with rounding noise.

    Returns
    -------
    float or None
        None where the angle is undefined: a norm is zero (at most `floor`), NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> cosine(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    1.0
    >>> cosine(np.array([1.0, 0.0]), np.zeros(2)) is None
    True
    """
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not all(floor < norm < np.inf for norm in norms):
        return None
    products = a * b if a.shape == b.shape else np.ravel(a) * np.ravel(b)
    return float(np.sum(products) / (norms[0] * norms[1]))


def defined_cosine(a: Array, b: Array) -> float:
    """As `cosine`, but ValueError where the angle is undefined."""
    value = cosine(a, b)
    if value is None:
        raise ValueError("an array is zero or not finite, so the cosine is undefined")
    return value


def closest_first(name: str, known: Iterable[str]) -> list[str]:
    """The known names, the one most similar to `name` first."""

    def similarity(other: str) -> float:
        return SequenceMatcher(None, name.lower(), other.lower()).ratio()

    return sorted(sorted(known), key=similarity, reverse=True)


class ArgumentError(ValueError):
    """An argument has an invalid value, or arguments contradict each other.

    The command line exits with code 2, as for an unknown option.
    """


def type_name(value: object) -> str:
    """The type of a value for messages: "an int", "a Model", "None".

    >>> type_name(3)
    'an int'
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name == 'ndarray' else 'a'} {name}"


def check_callback(name: str, callback: object) -> None:
    """Raise TypeError unless the callback, if there is one, is a function."""
    if callback is not None and not callable(callback):
        raise TypeError(f"{name} is {type_name(callback)}; give a function, such as print")


class UnknownNameError(ValueError, KeyError):
    """An unknown name; the message lists the known names, closest first.

    It is a ValueError for arguments and a KeyError for look-ups by name.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        names = closest_first(str(name), map(str, self.known))
        meant = get_close_matches(str(name).lower(), [each.lower() for each in names[:1]])
        likely = f"; did you mean {names[0]!r}?" if meant else ""
        said = f"unknown {kind} {name!r}; known: {', '.join(names) or 'none'}"
        super().__init__(said + likely + (hint and f"; {hint}"))

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quotes of a repr


def parse_enum(kind: str, members: type[M], given: str | M) -> M:
    """The member of an enumeration with that value, or the member itself."""
    if isinstance(given, members):
        return given
    known = {str(member.value): member for member in members}
    if given not in known:
        raise UnknownNameError(kind, str(given), known)
    return known[str(given)]


class NamedDict(dict[K, T]):
    """A dict whose unknown keys raise an UnknownNameError that lists the known ones.

    Examples
    --------
    >>> layers = NamedDict("layer", {"hidden": 1, "output": 2})
    >>> layers["h"]
    Traceback (most recent call last):
        ...
    neuro_eqprop.common.arrays.UnknownNameError: unknown layer 'h'; known: hidden, output
    """

    def __init__(self, kind: str, things: Mapping[K, T]) -> None:
        super().__init__(things)
        self.kind = kind

    def __missing__(self, key: K) -> NoReturn:
        raise UnknownNameError(self.kind, label(key), map(label, self))


def label(key: object) -> str:
    """A key as text; the parts of a tuple are joined by colons."""
    return ":".join(map(str, key)) if isinstance(key, tuple) else str(key)


def check_options(call: Callable[..., object], given: Iterable[str], kind: str) -> None:
    """Raise UnknownNameError for a name that `call` does not take as a keyword argument."""
    known = [
        name
        for name, parameter in signature(call).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)
