"""Operators as JSON and back: a name, or a table of the name and the operator's settings."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from neuro_eqprop.networks.operators import OPERATORS, AttentionKind, Conv2d, Operator

CLASSES: dict[str, Any] = {operator.stored_name: operator for operator in OPERATORS}
PADDED = "framed"
"""Stored name of a convolution with padding or stride, which files hold around a plain one."""


def to_json(operator: Operator) -> Any:  # noqa: ANN401
    """The operator's stored name, or a table of the name and its settings."""
    if isinstance(operator, Conv2d):
        plain = {"operator": operator.stored_name, "kernel": operator.kernel}
        if (operator.padding, operator.stride) == (0, 1):
            return plain
        frame = {"operator": PADDED, "margin": operator.padding, "step": operator.stride}
        return {**frame, "inner": plain}
    settings = {f.name: value_to_json(getattr(operator, f.name)) for f in fields(operator)}  # type: ignore[arg-type]
    name = operator.stored_name
    return {"operator": name, **settings} if settings else name


def value_to_json(value: Any) -> Any:  # noqa: ANN401
    """A setting as JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, OPERATORS):
        return to_json(value)
    return list(value) if isinstance(value, tuple) else value


def from_json(value: Any) -> Operator:  # noqa: ANN401
    """The operator that `to_json` wrote; ValueError if it is not valid."""
    table = {"operator": value} if isinstance(value, str) else dict(value)
    name = str(table.pop("operator", ""))
    if name == PADDED:
        inner = from_json(table.get("inner", ""))
        if set(table) != {"margin", "step", "inner"} or not isinstance(inner, Conv2d):
            raise ValueError(f"operator {name!r} needs margin, step and an inner 'conv2d'")
        return Conv2d(inner.kernel, int(table["margin"]), int(table["step"]))
    if name not in CLASSES:
        raise ValueError(f"operator {name!r} is unknown to this version")
    kind = CLASSES[name]
    types = {f.name: str(f.type) for f in fields(kind)}
    if not set(table) <= set(types):
        raise ValueError(f"operator {name!r} has no setting {sorted(set(table) - set(types))}")
    operator: Operator = kind(**{k: parse_setting(v, types[k]) for k, v in table.items()})
    return operator


def parse_setting(value: Any, wanted: str) -> Any:  # noqa: ANN401
    """A setting converted to the type of its field."""
    if wanted == "AttentionKind":
        return AttentionKind(value)
    if wanted.startswith("tuple"):
        return tuple(float(v) for v in value)
    simple = {"int": int, "float": float, "bool": bool}
    return simple[wanted](value) if wanted in simple else from_json(value)
