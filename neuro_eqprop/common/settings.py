"""Settings as frozen dataclasses whose fields state their default, range, choices and help text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

from neuro_eqprop.common.arrays import UnknownNameError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Instance = TypeVar("Instance", bound=DataclassInstance)


@dataclass(frozen=True, slots=True)
class Limits:
    """Help text and limits of one setting."""

    help: str = ""
    above: float | None = None
    """Exclusive lower limit."""
    least: float | None = None
    """Inclusive lower limit."""
    below: float | None = None
    """Exclusive upper limit."""
    most: float | None = None
    """Inclusive upper limit."""
    choices: Collection[str] | None = None
    only_with: tuple[str, str] | None = None
    """Name and value of another setting, without which this setting has no effect."""


NONE = Limits()


def setting(default: Any, text: str = "", **limits: Any) -> Any:  # noqa: ANN401
    """A dataclass field with a default, a help text and the limits of `Limits`."""
    return field(default=default, metadata={"limits": Limits(text, **limits)})


def limits_of(of: Field[Any]) -> Limits:
    """The help text and limits of a setting."""
    found = of.metadata.get("limits", NONE)
    assert isinstance(found, Limits)
    return found


def settings_of(kind: type[DataclassInstance]) -> dict[str, Field[Any]]:
    """The settings of a class by name, without the field `name`."""
    return {f.name: f for f in fields(kind) if f.name != "name"}


def check(settings: DataclassInstance) -> None:
    """Raise ValueError for values outside the choices and limits of their fields."""
    for f in fields(settings):
        value, choices = getattr(settings, f.name), limits_of(f).choices
        if choices is not None and value not in choices:
            raise UnknownNameError(f.name, value, [name for name in choices if name])
    for f in fields(settings):
        for reason in violations(limits_of(f), getattr(settings, f.name)):
            raise ValueError(f"{f.name} is {getattr(settings, f.name)}; {reason}")
    for f in fields(settings):
        limit, value = limits_of(f).only_with, getattr(settings, f.name)
        if limit and value != f.default and getattr(settings, limit[0]) != limit[1]:
            other, wanted = limit
            raise ValueError(
                f"setting {f.name!r} (here {value!r}) belongs to {other} {wanted!r}, and {other} "
                f"is {getattr(settings, other)!r}: leave it out"
            )


def violations(limits: Limits, value: Any) -> Iterator[str]:  # noqa: ANN401
    """The limits that a number breaks; NaN and infinity break every one."""
    number = {0.0: "zero", 1.0: "one"}
    if limits.above is not None and not limits.above < value < inf:
        yield f"it must be above {number.get(limits.above, limits.above)} and finite"
    if limits.least is not None and not limits.least <= value < inf:
        at_least = f"must be at least {limits.least}"
        yield f"it {at_least if limits.least else 'cannot be negative'} and must be finite"
    if limits.below is not None and not value < limits.below:
        yield f"it must be below {number.get(limits.below, limits.below)}"
    if limits.most is not None and not value <= limits.most:
        yield f"it must not be above {number.get(limits.most, limits.most)}"


def change(settings: Instance, changes: Mapping[str, Any], kind: str) -> Instance:
    """The settings with some replaced; values may be text, as on the command line."""
    known = {f.name for f in fields(settings)}
    for key in changes:
        if key not in known:
            raise UnknownNameError(kind, key, known)
    return replace(
        settings,
        **{key: convert(key, value, getattr(settings, key)) for key, value in changes.items()},
    )


def convert(key: str, value: Any, like: Any) -> Any:  # noqa: ANN401
    """The value in the type of `like`; text is parsed."""
    try:
        if isinstance(like, tuple):
            return to_ints(value)
        if isinstance(like, bool):
            return to_bool(value)
        if isinstance(like, float):
            return to_float(value)
        return to_int(value) if isinstance(like, int) else type(like)(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"setting {key!r} cannot be {value!r}: {error}") from error


def to_ints(value: Any) -> tuple[int, ...]:  # noqa: ANN401
    """A tuple of integers from an integer, a sequence, or text such as "96,96"."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list | tuple) else [parts]
    try:
        return tuple(to_int(part) for part in parts)
    except ValueError as error:
        raise ValueError(f"{error}; give integers separated by commas, such as 96,96") from None


def to_bool(value: Any) -> bool:  # noqa: ANN401
    """A bool from a bool or from text."""
    booleans = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in booleans:
        raise ValueError("neither true nor false")
    return booleans[str(value).lower()]


def to_float(value: Any) -> float:  # noqa: ANN401
    """A float from a number or from text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number") from None


def to_int(value: Any) -> int:  # noqa: ANN401
    """An integer from a number or from text; 1e2 is accepted, 1.5 is not."""
    try:
        return int(value) if isinstance(value, str) else index(value)
    except (TypeError, ValueError):
        number = to_float(value)
        if number != int(number):
            raise ValueError(f"{value} is not an integer") from None
        return int(number)
