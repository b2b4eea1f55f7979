"""Every Python example in docs/ runs, and every name of the package that docs mention exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from neuro_eqprop.cli.program import parser
from sims.claims.__main__ import claims_parser

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "hardware_profiles/README.md"]
)
FIRST_VERSION = {"changelog.md"}
"""Pages that also name modules of earlier versions."""
NEEDS_A_FILE = {"nir.md"}
"""Pages whose examples read a file of the reader's."""
MADE_WITH_THE_SITE = {"api.md", "command-line.md"}
"""Pages that the build of the site writes; it checks links to them."""
NOT_MODULES = {
    *("neuro_eqprop.profile", "neuro_eqprop.cases"),  # schemas of TOML files
    # groups of entry points
    *("neuro_eqprop.models", "neuro_eqprop.rules", "neuro_eqprop.datasets", "neuro_eqprop.codes"),
    *("neuro_eqprop.backends", "neuro_eqprop.activations"),
    "neuro_eqprop.json",  # the list of the files of a package
}
MARKS = {"biology.md": [pytest.mark.brian2, pytest.mark.slow]}


def code(page: Path) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return "\n".join(blocks)


WITH_CODE = [
    pytest.param(page, id=page.stem, marks=MARKS.get(page.name, []))
    for page in PAGES
    if code(page)
    and page.name not in NEEDS_A_FILE
    and page.is_relative_to(ROOT / "docs")
    # `test_tutorial_pages` runs these, with their commands.
    and not page.is_relative_to(ROOT / "docs" / "tutorials")
    # They show parts of modules.
    and not page.is_relative_to(ROOT / "docs" / "decisions")
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_python_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code(page)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in FIRST_VERSION],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_module_and_name_that_a_page_mentions_exists(page: Path) -> None:
    text = page.read_text()
    dotted = set(re.findall(r"\bneuro_eqprop(?:\.[A-Za-z_]\w*)+\b(?!/\d)", text))
    for name in dotted - NOT_MODULES:
        resolve(name)
    for line in re.findall(r"from (neuro_eqprop[\w.]*) import ([\w, ]+)", text):
        module = import_module(line[0])
        for each in line[1].split(","):
            assert hasattr(module, each.strip()), f"{line[0]}.{each.strip()}"
    for path in re.findall(r"(?<![/\w])(?:neuro_eqprop|tests|sims)/[\w/]+(?:\.(?:py|toml))?", text):
        assert (ROOT / path).exists(), path


def resolve(name: str) -> object:
    """The module or attribute of a dotted name; an error if there is none."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        holder, _, last = name.rpartition(".")
        return getattr(resolve(holder), last)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [
        link
        for link in links
        if "://" not in link
        and Path(link).name not in MADE_WITH_THE_SITE
        and not (page.parent / link).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_have_options_that_exist(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page.read_text()
    lines = re.findall(r"^ *(?:\.venv/bin/)?neuro-eqprop (\w.+)$", text, re.MULTILINE)
    for line in {*lines, *re.findall(r"`(?:\.venv/bin/)?neuro-eqprop (\w+ [^`\n]+)`", text)}:
        words = shlex.split(line.partition("`")[0], comments=True)
        missing = words[0] in ("train", "learn", "sweep") and "--out" not in words
        words += ["--out", "RUN"] if missing else []
        with suppress(SystemExit):
            parser(words).parse_args(words)
        assert capsys.readouterr().err == "", line
    for line in re.findall(r"python -m sims\.claims ([^`\n]+)", text):
        with suppress(SystemExit):
            claims_parser().parse_args(shlex.split(line, comments=True))
        assert capsys.readouterr().err == "", line


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not page.read_text().startswith("--8<--")],  # another folder's page
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_says_first_what_it_is_for(page: Path) -> None:
    title, _, text = page.read_text().partition("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    first = text.partition("\n\n")[0]
    assert re.match(r"[A-Z`*\[]", first), f"it opens with {first[:40]!r}"
    assert not re.match(r"(?:Made|Written|This page is generated) ?(?:by|:)", first), first[:40]
    assert "." in first
