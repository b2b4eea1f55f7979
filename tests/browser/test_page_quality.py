"""The report in Chromium at two widths, light and dark: labels, console, size, accessibility."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuro_eqprop.html_report.write import report

pytestmark = pytest.mark.browser

VIEWS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]
MAX_BYTES = 3_000_000
PATIENCE = 120_000
"""Milliseconds to wait for a page on a busy machine."""
OVERLAPS = """() => {
  const found = [];
  document.querySelectorAll('.js-plotly-plot, svg.network').forEach((chart) => {
    const labels = [...chart.querySelectorAll(
      '.annotation-text, .xtick text, .ytick text, .xtitle, .ytitle, .legendtext, text')]
      .filter((label, k, all) => all.indexOf(label) === k && label.textContent.trim())
      .map((label) => [label.textContent, label.getBoundingClientRect()])
      .filter(([, box]) => box.width > 0 && box.height > 0);
    labels.forEach(([text, a], k) => labels.slice(k + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) found.push(`${chart.id}: ${text} / ${other}`);
    }));
  });
  return found;
}"""
"""Pairs of labels of a chart whose boxes overlap."""
NODE = Path(__file__).parents[2] / ".venv" / "node_modules"
"""Where `make browser` puts npm packages."""
ROOTS = [Path(os.environ.get("NEURO_EQPROP_NODE", NODE)), Path("/usr/share/nodejs")]
"""Folders of npm packages in which axe-core is looked for."""


def axe_core() -> str:
    """The script of axe-core; without the package the test is skipped and says so."""
    for root in ROOTS:
        path = root / "axe-core" / "axe.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    pytest.skip(
        "axe-core was not found: run `make browser`, or `npm install axe-core` and set "
        "NEURO_EQPROP_NODE to its node_modules"
    )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """An open browser."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on the path: the report was not tested in a browser")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def written(trained_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run with all its files."""
    return report(trained_run, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_no_labels_overlap_and_nothing_is_complained_about(
    chromium: Any,  # noqa: ANN401
    written: Path,
    width: int,
    scheme: str,
) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(written.as_uri(), timeout=PATIENCE)
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=PATIENCE)
    assert complaints == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_page_is_small(written: Path) -> None:
    assert written.stat().st_size < MAX_BYTES


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(
    chromium: Any,  # noqa: ANN401
    written: Path,
    tmp_path: Path,
    scheme: str,
) -> None:
    script = axe_core()
    # The page forbids foreign scripts: axe runs on a copy without that policy.
    copy = tmp_path / "report.html"
    text = written.read_text(encoding="utf-8")
    copy.write_text(text.replace("Content-Security-Policy", "x-policy"), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
    page.goto(copy.as_uri(), timeout=PATIENCE)
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=PATIENCE)
    page.evaluate(script)
    found = page.evaluate("axe.run().then((result) => result.violations)")
    serious = [
        f"{each['id']}: {each['nodes'][0]['html'][:160]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
    page.close()


def test_every_section_is_in_the_contents(chromium: Any, written: Path) -> None:  # noqa: ANN401
    page = chromium.new_page()
    page.goto(written.as_uri(), timeout=PATIENCE)
    links = page.evaluate("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
    sections = page.evaluate("[...document.querySelectorAll('main section')].map(s => s.id)")
    assert links == sections
    assert {"network", "mistakes", "descent", "statistics"} <= set(sections)
    assert page.evaluate("document.querySelectorAll('svg.network rect').length") == 3
    page.close()
