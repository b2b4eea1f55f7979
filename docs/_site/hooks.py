"""What the site reads from the repository: its version and the address of a page's source."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


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
    words = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    address = done.stdout.strip().removesuffix(".git")
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address)
    return address if address.startswith("https://") else None


def on_config(config: Any) -> Any:  # noqa: ANN401
    """Name the version in the title and the repository in the header."""
    config.site_name = f"neuro_eqprop {version()}"
    config.repo_url = repository()
    return config


def on_page_context(context: Any, *, page: Any, config: Any, **_: Any) -> Any:  # noqa: ANN401
    """Link a page to its source; in a clone without a remote, to the file on this disk."""
    base = f"{config.repo_url}/edit/main" if config.repo_url else ROOT.as_uri()
    page.edit_url = f"{base}/docs/{page.file.src_uri}"
    return context
