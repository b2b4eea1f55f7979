"""Operators as plain JSON, and back: a name, or a name with its settings."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from neuro_eqprop.operators import KINDS, Kind, Operator

STORED = {
    "delayedfeedback": "echo",
    "stridedconv2d": "framed",
    "crossattention": "lookup",
    "layernorm": "normed",
    "identity": "plain",
}
"""Names in files of operators whose class was renamed since: files keep the first name."""


def stored_name(kind: type) -> str:
    """The name of an operator class in files."""
    name = kind.__name__.lower()
    return STORED.get(name, name)


NAMES = {stored_name(kind): kind for kind in KINDS}


def to_text(operator: Operator) -> Any:  # noqa: ANN401
    """The operator's name, or a table of its name and settings."""
    name = stored_name(type(operator))
    settings = {f.name: to_json_value(getattr(operator, f.name)) for f in fields(operator)}  # type: ignore[arg-type]
    return {"operator": name, **settings} if settings else name


def to_json_value(value: Any) -> Any:  # noqa: ANN401
    """A setting as JSON."""
    if isinstance(value, Enum):
        return value.value
    if type(value) in KINDS:
        return to_text(value)
    return list(value) if isinstance(value, tuple) else value


def from_text(told: Any) -> Operator:  # noqa: ANN401
    """The operator that `to_text` told of, checked."""
    table = {"operator": told} if isinstance(told, str) else dict(told)
    name = str(table.pop("operator", ""))
    if name not in NAMES:
        raise ValueError(f"operator {name!r} is unknown to this version")
    kind = NAMES[name]
    types = {f.name: str(f.type) for f in fields(kind)}
    if not set(table) <= set(types):
        raise ValueError(f"operator {name!r} has no setting {sorted(set(table) - set(types))}")
    made: Operator = kind(**{key: setting(value, types[key]) for key, value in table.items()})
    return made


def setting(value: Any, wanted: str) -> Any:  # noqa: ANN401
    """A setting in the type that its field asks for."""
    if wanted == "Kind":
        return Kind(value)
    if wanted.startswith("tuple"):
        return tuple(float(v) for v in value)
    simple = {"int": int, "float": float, "bool": bool}
    return simple[wanted](value) if wanted in simple else from_text(value)
