"""Facts that the site reads from the repository: its version and the address of a page's source."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "hardware_profiles" / "README.md"
SOURCES = {
    "how-to/add-a-chip.md": "hardware_profiles/README.md",
    "reference/api.md": "neuro_eqprop/__init__.py",
    "reference/command-line.md": "docs/_site/command_line.py",
}
"""Source files of generated pages, for their edit links."""

GROUPS = {
    "Data": ("load_data", "Dataset", "Split"),
    "Networks and models": (
        "Network",
        "Layer",
        "Connection",
        "Model",
        "Evaluation",
        "History",
        "from_torch",
    ),
    "Training": ("train", "learn_on_chip", "sweep", "EqPropClassifier"),
    "Spikes": ("SpikingModel", "SpikingNetwork", "Simulation", "from_nir", "from_snntorch"),
    "Traces": ("Trace", "open_trace", "compare", "spike_timing", "pair_protocol"),
    "Energy": ("estimate_energy", "EnergyEstimate", "EnergyReport", "Profile", "load_profile"),
    "Runs and reports": ("open_run", "Run", "report"),
    "Backends": ("load_backend", "check_backend"),
}
"""The headings of the API page; a public name that is in none comes under the last heading."""
LONGEST = 12
"""Rows of a table, or parts of a page of results, that are still shown at once."""
MOST_ROWS = 50
"""Rows of all tables of a page from which on its parts are folded."""
FOLD = "<details><summary>{}</summary>"
INTRODUCTION = """\
# Python API

The public functions and classes, each with its parameters, their units, what it returns and an
example. `import neuro_eqprop as ne`; `dir(ne)` lists these names. Everything else in the package
may change between versions. Names, paths and objects are accepted wherever a person would type
one: a data set by its name or as a `Dataset`, a run by its folder or as a `Run`.

"""


def version() -> str:
    """The version of the package, read from its source."""
    text = (ROOT / "neuro_eqprop" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)
    assert found is not None
    return found.group(1)


def repository() -> str | None:
    """The web address of the repository: the environment's, or that of the remote `origin`."""
    given = os.environ.get("NEURO_EQPROP_REPOSITORY")
    if given:
        return given.removesuffix("/")
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    address = done.stdout.strip().removesuffix(".git")
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address)
    return address if address.startswith("https://") else None


def public_names() -> dict[str, str]:
    """The public names and the full name of each, read from the package."""
    from neuro_eqprop import HOMES

    return {name: f"neuro_eqprop.{home}.{name}" for name, home in HOMES.items()}


def file_of(title: str) -> str:
    """The page of a group of public names."""
    return f"reference/api/{title.lower().replace(' ', '-')}.md"


def api_pages() -> dict[str, str]:
    """The pages of the API: an overview of all names, and a page a group with docstrings."""
    names = public_names()
    grouped = {name for group in GROUPS.values() for name in group}
    others = tuple(name for name in names if name not in grouped)
    pages, lines = {}, [INTRODUCTION]
    for title, group in {**GROUPS, "Others": others}.items():
        present = [name for name in group if name in names]
        if present:
            path = file_of(title)
            pages[path] = "\n".join([f"# {title}\n", *(f"::: {names[n]}\n" for n in present)])
            place = path.removeprefix("reference/")
            links = ", ".join(f"[`{name}`]({place}#{names[name]})" for name in present)
            lines.append(f"- [{title}]({place}): {links}")
    return {"reference/api.md": "\n".join(lines) + "\n", **pages}


def on_files(files: Any, *, config: Any) -> Any:  # noqa: ANN401
    """Add the pages that are made from the package: its API and its command line."""
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    from command_line import page

    for path, text in {**api_pages(), "reference/command-line.md": page()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401
    """Include the page of the profiles, which lies beside them, with links from its place here."""
    text = PROFILES.read_text(encoding="utf-8").replace("](../docs/", "](../")
    return markdown.replace(f'--8<-- "{PROFILES.relative_to(ROOT)}"', text)


def fold_long_parts(html: str) -> str:
    """The page with its long tables folded; with all its parts folded if it has many."""
    if html.count("<h2") >= LONGEST or html.count("<tr>") >= MOST_ROWS:
        start, *parts = re.split(r"(?=<h2)", html)
        made = [re.sub(r"</h2>", f"</h2>{FOLD.format('Measurements')}", p, count=1) for p in parts]
        return start + "".join(f"{part}</details>" for part in made)

    def folded(found: re.Match[str]) -> str:
        rows = found[0].count("<tr>") - 1
        return found[0] if rows < LONGEST else f"{FOLD.format(f'{rows} rows')}{found[0]}</details>"

    return re.sub(r"<table>.*?</table>", folded, html, flags=re.DOTALL)


def on_page_content(html: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Lead the links of a notebook to pages, not to their sources, and offer the notebook."""
    path = Path(page.file.src_uri)
    if path.parent.name == "results":
        return fold_long_parts(html)
    if path.suffix != ".ipynb":
        return html
    linked = re.sub(r'href="([^":]+)\.(?:md|ipynb)(#[^"]*)?"', r'href="\1.html\2"', html)
    return f'{linked}\n<p><a href="{path.name}" download>Download this notebook</a></p>\n'


def on_config(config: Any) -> Any:  # noqa: ANN401
    """Name the version in the title and the repository in the header."""
    config.site_name = f"neuro_eqprop {version()}"
    config.repo_url = repository()
    return config


def on_page_context(context: Any, *, page: Any, config: Any, **_: Any) -> Any:  # noqa: ANN401
    """Link a page to its source; in a clone without a remote, to the file on this disk."""
    base = f"{config.repo_url}/edit/main" if config.repo_url else ROOT.as_uri()
    path = page.file.src_uri
    made = SOURCES["reference/api.md"] if path.startswith("reference/api/") else f"docs/{path}"
    page.edit_url = f"{base}/{SOURCES.get(path, made)}"
    return context
