"""Every paper that code or docs cite is in the bibliography."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = ROOT / "docs" / "reference" / "bibliography.md"

# "Scellier & Bengio 2017", "Davies et al. (2018)", "Hopfield 1984", "van Rossum 2001"
CITATION = re.compile(
    r"(?P<first>(?:van )?[A-Z][\w'-]+)"
    r"(?P<others>(?:,? (?:et al\.|(?:&|and) [A-Z][\w-]+))?),? \(?(?P<year>(?:19|20)\d\d)\b"
)
# Capitalised words before a year that are no authors: chips and the project's own notes.
NOT_AUTHORS = {"Loihi", "TrueNorth", "Transformer", "UCLouvain", "Python", "January", "Jetson"}


def cited() -> dict[tuple[str, str], Path]:
    """First author and year of each citation, with a file that has it."""
    found = {}
    docs = [path for path in (ROOT / "docs").rglob("*.md") if path != BIBLIOGRAPHY]
    for path in [*(ROOT / "neuro_eqprop").rglob("*.py"), *docs, ROOT / "README.md"]:
        if path.is_relative_to(ROOT / "docs" / "results"):
            continue  # generated from sources that have their own references
        for match in CITATION.finditer(path.read_text(encoding="utf-8")):
            if match["first"] not in NOT_AUTHORS:
                found[match["first"], match["year"]] = path.relative_to(ROOT)
    return found


def test_every_cited_paper_is_in_the_bibliography() -> None:
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line.startswith("- ")]
    citations = cited()
    assert len(citations) > 30  # the pattern still finds them
    missing = {
        f"{author} {year}": str(path)
        for (author, year), path in citations.items()
        if not any(author in entry and f"({year})" in entry for entry in entries)
    }
    assert missing == {}
