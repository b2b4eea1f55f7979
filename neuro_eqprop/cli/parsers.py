"""Argument parser with defaults and examples in its help, and suggestions for typos."""

from __future__ import annotations

import re
from argparse import (
    SUPPRESS,
    Action,
    ArgumentError,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from neuro_eqprop.cli.command import (
    fraction,
    positive_float,
    positive_int,
)

METAVARS: dict[object, str] = {
    int: "N",
    positive_int: "N",
    float: "X",
    positive_float: "X",
    fraction: "X",
    Path: "PATH",
}
"""Placeholder of a value, by the type of its option."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the closest known name, or an empty string."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else ""


def takes_value(action: Action) -> bool:
    """Return whether an option takes a value."""
    return bool(action.option_strings) and action.nargs != 0


def shown(value: object) -> str:
    """Format a default for the help."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


class HelpFormatter(RawDescriptionHelpFormatter):
    """Help formatter that keeps the lines of examples and adds the default of every option."""

    def _get_help_string(self, action: Action) -> str:
        text = action.help or ""
        if not takes_value(action) or "default" in text:
            return text
        if action.required:
            return f"{text} (required)".strip()
        unset = action.default in (None, [], SUPPRESS)
        return text if unset else f"{text} (default {shown(action.default)})".strip()

    def _get_default_metavar_for_optional(self, action: Action) -> str:
        return METAVARS.get(action.type) or super()._get_default_metavar_for_optional(action)


class Parser(ArgumentParser):
    """Argument parser whose errors are one sentence, with a suggestion for a misspelled option."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **{"formatter_class": HelpFormatter, **settings})
        # Treat "-1mJ" as a value, so that the type of the option rejects it with a reason.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    @property
    def flags(self) -> tuple[str, ...]:
        """Long options, with their dashes."""
        return tuple(flag for flag in self._option_string_actions if flag.startswith("--"))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse as argparse does, but report an unknown option before a missing argument."""
        if self._subparsers is None:
            self.check_flags(args or ())
        return super().parse_known_args(args, namespace)

    def check_flags(self, arguments: Sequence[str]) -> None:
        """Exit with a suggestion if an option is unknown; abbreviations are allowed."""
        for argument in arguments:
            if argument == "--":
                return
            name = argument.partition("=")[0]
            if name.startswith("--") and not any(flag.startswith(name) for flag in self.flags):
                self.error(f"unknown option {name}{suggestion(name, self.flags)}")

    def _check_value(self, action: Action, value: object) -> None:
        """Refuse a value that is none of the choices, with those and a suggestion."""
        if action.choices is not None and value not in action.choices:
            known = [str(each) for each in action.choices]
            reason = f"{value!r} is none of {', '.join(known)}{suggestion(str(value), known)}"
            raise ArgumentError(action, reason)

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one sentence."""
        end = "" if message.endswith("?") else ";"
        self.exit(2, f"{self.prog}: {message}{end} `{self.prog} --help` lists the options\n")
