"""A part of `docs/results/trainer-numbers.md`, replaced by what was just measured."""

from __future__ import annotations

import re
from pathlib import Path

from neuro_eqprop.files.write import write_text

PAGE = Path(__file__).parents[2] / "docs" / "results" / "trainer-numbers.md"


def put(name: str, lines: list[str]) -> None:
    """Write lines between the marks of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text()
    made = "\n".join([begin, *lines, end])
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not found.search(text):
        raise SystemExit(f"{PAGE} has no marks {begin} and {end}")
    write_text(PAGE, found.sub(lambda _: made, text))
