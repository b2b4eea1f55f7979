"""The report in a real browser: what the page says it does, it does there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from neuro_eqprop.cli.report import report

pytestmark = pytest.mark.browser

ARTEFACTS = Path(__file__).parents[2] / "test-artefacts"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 200_000
"""Milliseconds: a busy machine opens a page slowly."""
Browser: TypeAlias = Any
"""Of playwright, whose types are not at hand without its package."""
Fill: TypeAlias = Callable[[Path], Path]


def chromium() -> str:
    """Where the browser is; without one the tests are skipped, in CI they fail."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        told = "no Chromium on the path: the report was not tested in a browser"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return found


@dataclass
class Visit:
    """An open page, with all it complained about and all it asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=QUIET)
        yield opened
        opened.close()


@contextmanager
def visit(
    browser: Browser, html: Path, *, width: int = 1280, scheme: str = "light"
) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.set_default_timeout(PATIENCE)
    seen = Visit(context.new_page())
    seen.page.on("console", lambda message: seen.complaints.append(message.text))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.goto(html.as_uri())
    yield seen
    context.close()


def course(seen: Visit, chart: str) -> list[float]:
    """The values of the first line of a chart."""
    script = f"Array.from(document.getElementById('{chart}').data[0].y)"
    values: list[float] = seen.page.evaluate(script)
    return values


def column(seen: Visit, table: str, place: int) -> list[str]:
    rows = f"[...document.querySelectorAll('#{table} tbody tr')]"
    script = f"{rows}.map(row => row.children[{place}].dataset.value)"
    values: list[str] = seen.page.evaluate(script)
    return values


@pytest.fixture(scope="module")
def html(make_run: Fill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(make_run(tmp_path_factory.mktemp("report") / "run"))


@pytest.fixture(scope="module")
def seen(browser: Browser, html: Path) -> Iterator[Visit]:
    """One visit, shared: each test finds the page as the others left it."""
    with visit(browser, html) as desktop:
        yield desktop


def keep(seen: Visit, name: str) -> None:
    """A picture of the whole page, kept as an artefact."""
    ARTEFACTS.mkdir(exist_ok=True)
    seen.page.screenshot(path=ARTEFACTS / f"report-{name}.png", full_page=True)


def test_page_loads_quietly_and_needs_no_network(seen: Visit, html: Path) -> None:
    assert seen.page.locator(".js-plotly-plot").count() == 9
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1280
    keep(seen, "desktop")
    assert seen.complaints == []
    assert seen.requests == [html.as_uri()]


def test_slider_changes_the_sample(seen: Visit) -> None:
    seen.page.locator("#sample").focus()
    seen.page.keyboard.press("Home")
    before = course(seen, "rates"), course(seen, "firing"), course(seen, "raster")
    assert seen.page.locator("#which").text_content() == "sample 100, label 4"
    seen.page.keyboard.press("ArrowRight")
    assert "sample 101" in seen.page.locator("#which").text_content()
    after = course(seen, "rates"), course(seen, "firing"), course(seen, "raster")
    assert all(one != other for one, other in zip(before, after, strict=True))
    seen.page.keyboard.press("End")
    assert "sample 105" in seen.page.locator("#which").text_content()
    assert seen.complaints == []


def test_layer_and_phase_can_be_chosen(seen: Visit) -> None:
    before = course(seen, "rates")
    seen.page.locator("#layer").select_option("hidden")
    assert course(seen, "rates") != before
    assert "16 of 24 units of hidden" in seen.page.locator("#left-out").text_content()
    points = "Array.from(document.getElementById('scatter').data[1].y)"
    free = seen.page.evaluate(points)
    seen.page.locator("#phase").select_option("positive")
    assert seen.page.evaluate(points) != free


def test_tables_sort_both_ways(seen: Visit) -> None:
    head = seen.page.locator("#agreement-table th").nth(4)
    head.locator("button").click()
    up = [float(value) for value in column(seen, "agreement-table", 4)]
    assert head.get_attribute("aria-sort") == "ascending"
    assert up == sorted(up)
    head.locator("button").click()
    down = [float(value) for value in column(seen, "agreement-table", 4)]
    assert down == up[::-1] != up
    seen.page.locator("#simulators-table th button").nth(0).click()
    assert column(seen, "simulators-table", 0) == ["lava", "rate", "reference"]
    for _ in range(2):
        seen.page.locator("#simulators-table th button").nth(2).click()
        assert column(seen, "simulators-table", 2)[-1] == ""


def test_dark_redraws_and_paper_is_white(seen: Visit) -> None:
    ink = "document.getElementById('rates').layout.font.color"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = seen.page.evaluate(ink)
    seen.page.emulate_media(color_scheme="dark")
    seen.page.wait_for_function(f"{ink} !== '{light}'", timeout=PATIENCE)
    assert seen.page.evaluate(paper) == "rgb(16, 22, 28)"
    keep(seen, "dark")
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.evaluate(paper) == "rgb(255, 255, 255)"
    assert seen.page.evaluate(ink) == light
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen.page.evaluate(ink) != light
    assert seen.page.pdf(path=ARTEFACTS / "report.pdf").startswith(b"%PDF")
    assert seen.complaints == []


def test_it_fits_a_phone(browser: Browser, html: Path) -> None:
    with visit(browser, html, width=390) as phone:
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
        width = "document.querySelector('#rates .main-svg').getBoundingClientRect().width"
        assert 250 < phone.page.evaluate(width) <= 390
        keep(phone, "phone")
        assert phone.complaints == []


def test_markup_from_files_stays_text(browser: Browser, make_run: Fill, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "study.toml").write_text("dataset = '<img src=x onerror=alert(1)>'\n")
    (run / "metrics.jsonl").write_text(
        '{"epoch": 1, "spectral": {"<a href=\\"https://example.com\\">x</a>": 1.0}}\n'
    )
    with visit(browser, report(run)) as seen:
        assert seen.page.locator("h1").text_content() == "<img src=x onerror=alert(1)>"
        assert seen.page.locator("img, a[href], svg a").count() == 0
        assert seen.complaints == []
        assert len(seen.requests) == 1


def test_an_almost_empty_run_makes_a_quiet_page(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('dataset = "digits"\n')
    with visit(browser, report(tmp_path)) as seen:
        assert seen.page.locator(".missing").first.is_visible()
        assert seen.complaints == []


def test_rates_alone_and_spikes_alone_make_quiet_pages(
    browser: Browser, make_run: Fill, tmp_path: Path
) -> None:
    for left in ("rate.h5", "traces.h5"):
        run = make_run(tmp_path / left.removesuffix(".h5"))
        (run / left).unlink()
        with visit(browser, report(run)) as seen:
            chart = "firing" if left == "rate.h5" else "rates"
            assert len(course(seen, chart)) == 192
            assert seen.complaints == []
