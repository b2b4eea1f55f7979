"""The site builds strictly, with every page, without a broken link or a missing reference."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest

import neuro_eqprop as ne
from neuro_eqprop import __version__
from neuro_eqprop.cli.completion import actions
from neuro_eqprop.cli.program import COMMANDS, build_parser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_documentation_is_in_the_site(site: Path) -> None:
    pages = [
        path.relative_to(ROOT / "docs").with_suffix(".html")
        for path in (ROOT / "docs").rglob("*")
        if path.suffix in {".md", ".ipynb"}
    ]
    assert len(pages) > 30
    assert [page for page in pages if not (site / page).is_file()] == []


def test_the_reference_has_every_public_name_with_its_docstring(site: Path) -> None:
    pages = sorted((site / "reference" / "api").glob("*.html"))
    assert len(pages) > 5
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    homes: dict[str, str] = vars(ne)["HOMES"]
    for name in set(dir(ne)) - {"__version__"}:
        assert f'id="neuro_eqprop.{homes[name]}.{name}"' in text, name


def test_the_reference_has_every_command_and_option(site: Path) -> None:
    text = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    assert "<code>--samples N|all</code>" in text
    for name in COMMANDS:
        assert f'id="{name}"' in text
        flags = {flag for action in actions(subparser(name)) for flag in action.option_strings}
        for flag in flags - {"-h", "--help", "--json", "--debug"}:
            assert f"<code>{flag}" in text, f"{name} {flag}"


def subparser(name: str) -> ArgumentParser:
    """The parser of a command, with its options."""
    places = next(a for a in build_parser((name,))._actions if isinstance(a.choices, dict))
    assert isinstance(places.choices, dict)
    found = places.choices[name]
    assert isinstance(found, ArgumentParser)
    return found


def test_a_page_names_the_version_and_links_to_its_source(site: Path) -> None:
    text = (site / "explanation" / "spikes.html").read_text(encoding="utf-8")
    assert f"neuro_eqprop {__version__}" in text
    assert "/docs/explanation/spikes.md" in text


def test_the_page_for_contributors_has_the_layers_that_the_imports_keep() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [
        [name for name in layer.split(" | ") if not name.startswith("_")]
        for layer in contract["contracts"][0]["layers"]
    ]
    page = (ROOT / "docs" / "contributing.md").read_text()
    rows = re.findall(r"^\| (`.+?`) \|", page.partition("## How to add")[0], re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == layers


def test_the_search_finds_a_page_by_its_text(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "sigma-delta" in index


def test_every_link_leads_to_a_page_of_the_site(site: Path) -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    for page, text in texts.items():
        for link in re.findall(r'(?:src|href)="(?![a-z]+:)([^"]+)"', text):
            path, _, place = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            target = site / path[1:] if path.startswith("/") else target
            assert target.exists(), f"{page.name}: {link}"
            assert place == "" or f'id="{place}"' in texts[target], link


def test_long_results_are_folded(site: Path) -> None:
    claims = (site / "results" / "claims.html").read_text(encoding="utf-8")
    assert claims.count("<details>") == claims.count("</details>") == claims.count("<h2")
    learning = (site / "results" / "learning.html").read_text(encoding="utf-8")
    assert learning.count("<details>") == learning.count("</details>") == learning.count("<h2") > 3


def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = re.findall(
            r'<(?:script|img)[^>]+src="(https?:[^"]+)|<link[^>]+href="(https?:[^"]+)[^>]+stylesheet',
            page.read_text(encoding="utf-8"),
        )
        assert found == [], page.name
