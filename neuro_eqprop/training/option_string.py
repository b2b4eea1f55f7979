"""A name with options as text: `adam`, or `sgd(momentum=0.5, nesterov=True)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class OptionString:
    """A name and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


def parse_option_string(text: str) -> OptionString:
    """Parse a name with options; values are numbers, quoted strings, or lists of them.

    `true` and `false` are accepted in lower case, as in TOML.

    Examples
    --------
    >>> parse_option_string("sgd(momentum=0.5)")
    OptionString(name='sgd', options={'momentum': 0.5})
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return OptionString(tree.id)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args:
            given = {
                keyword.arg: literal(keyword.value) for keyword in tree.keywords if keyword.arg
            }
            if len(given) == len(tree.keywords):
                return OptionString(tree.func.id, given)
    except (SyntaxError, ValueError):
        pass
    raise ValueError(
        f"{text!r} is neither a name nor a name with options, such as sgd(momentum=0.5)"
    )


def literal(tree: ast.expr) -> Any:  # noqa: ANN401
    """The value of an option; `true` and `false` become bool."""
    if isinstance(tree, ast.Name) and tree.id in {"true", "false"}:
        return tree.id == "true"
    return ast.literal_eval(tree)
