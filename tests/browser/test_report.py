"""The report in a real browser: what the page says it does, it does there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.pareto import Point
from neuro_eqprop.chips.energy.result import CurveSettings, EnergyEstimate, EnergyReport
from neuro_eqprop.cli import main
from neuro_eqprop.html_report.write import report
from neuro_eqprop.simulators.synapse_recording import COLUMNS
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.synapse_history import synapse_logs_of_trace
from neuro_eqprop.traces.trace import Trace

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
        result = "no Chromium on the path: the report was not tested in a browser"
        if os.environ.get("CI"):
            pytest.fail(result)
        pytest.skip(result)
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


def drawn(seen: Visit, *charts: str) -> list[list[list[float]]]:
    """Values of all lines of each chart."""
    script = "id => document.getElementById(id).data.map(each => Array.from(each.y))"
    return [seen.page.evaluate(script, chart) for chart in charts]


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
    assert seen.page.locator(".js-plotly-plot").count() == 16
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1280
    keep(seen, "desktop")
    assert seen.complaints == []
    assert seen.requests == [html.as_uri()]


def test_slider_changes_the_sample(seen: Visit, recorded: dict[str, Trace]) -> None:
    seen.page.locator("#sample").focus()
    seen.page.keyboard.press("Home")
    before = drawn(seen, "rates", "firing", "raster")
    label = recorded["rate"].label[0]
    assert seen.page.locator("#which").text_content() == f"sample 0, label {label}"
    seen.page.keyboard.press("ArrowRight")
    assert "sample 1," in seen.page.locator("#which").text_content()
    after = drawn(seen, "rates", "firing", "raster")
    assert all(one != other for one, other in zip(before, after, strict=True))
    seen.page.keyboard.press("End")
    assert "sample 5," in seen.page.locator("#which").text_content()
    assert seen.complaints == []


def test_second_slider_goes_over_the_phases(seen: Visit) -> None:
    steps = "id => document.getElementById(id).layout.xaxis.range"
    seen.page.locator("#zoom").focus()
    seen.page.keyboard.press("Home")
    assert seen.page.locator("#part").text_content() == "all phases"
    assert seen.page.evaluate(steps, "rates") == [0.5, 192.5]
    for name, span in (("free", [0.5, 64.5]), ("negative, beta -0.25", [64.5, 128.5])):
        seen.page.keyboard.press("ArrowRight")
        assert seen.page.locator("#part").text_content() == name
        for chart in ("rates", "firing", "raster"):
            assert seen.page.evaluate(steps, chart) == span
        assert seen.page.locator("#phase").input_value() == name.partition(",")[0]
    keep(seen, "one-phase")
    seen.page.keyboard.press("Home")
    seen.page.locator("#phase").select_option("free")
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


def history(seen: Visit) -> dict[str, Any]:
    """What the chart of a synapse shows, by axis: the lines of rates and of spikes."""
    script = """[...document.getElementById('history').data].filter(t => t.mode === 'lines')
        .map(t => [t.yaxis, t.name, Array.from(t.y)])"""
    found: dict[str, Any] = {}
    for axis, name, values in seen.page.evaluate(script):
        found.setdefault(axis, {})[name] = values
    return found


def until(seen: Visit, holds: str, result: str | None = None) -> None:
    """Wait for a function of the page to be true.

    Asked from here: the page forbids the evaluation that playwright's own waiting does in it.
    """
    for _ in range(PATIENCE // 50):
        if seen.page.evaluate(holds, result):
            return
        seen.page.wait_for_timeout(50)
    raise AssertionError(f"it never came true: {holds}")


def click(seen: Visit, row: int, column: int) -> None:
    """Click the middle of a cell of the matrix, as a mouse would."""
    seen.page.locator("#matrix").scroll_into_view_if_needed()
    script = f"""(() => {{ const plot = document.getElementById('matrix'), shape = plot._fullLayout,
        box = plot.getBoundingClientRect();
        return [box.x + shape.xaxis._offset + shape.xaxis.l2p({column}),
                box.y + shape.yaxis._offset + shape.yaxis.l2p({row})]; }})()"""
    x, y = seen.page.evaluate(script)
    seen.page.wait_for_timeout(400)  # Plotly takes two clicks within 300 ms for a double click
    seen.page.mouse.move(x, y)
    seen.page.mouse.click(x, y)


def test_clicking_a_synapse_shows_its_history(seen: Visit, recorded: dict[str, Trace]) -> None:
    seen.page.locator("#connection").select_option("hidden->output")
    before, sample = history(seen), int(seen.page.locator("#sample").input_value())
    everything = [(t, s) for t in range(10) for s in range(24)]
    result = synapse_logs_of_trace(recorded["rate"], "hidden->output", everything)[sample]
    shown = tuple(int(seen.page.locator(f"#{end}").input_value()) for end in ("to", "from"))
    strongest = (everything[k] for k in np.argsort(-np.abs(result.tag[-1])))
    synapse = next(each for each in strongest if each != shown)
    click(seen, *synapse)
    until(
        seen,
        "text => document.querySelector('figure:has(#history) figcaption').textContent"
        ".startsWith(text)",
        f"hidden {synapse[1]} → output {synapse[0]}",
    )
    after = history(seen)
    assert before != after
    for name, kind in (("rate", "rate"), ("reference", "spikes")):
        result = synapse_logs_of_trace(recorded[kind], "hidden->output", [synapse])[sample]
        for axis, field_name in zip(("y", "y2", "y3", "y4", "y5"), COLUMNS, strict=True):
            wanted = getattr(result, field_name)[:, 0]
            np.testing.assert_allclose(after[axis][name], wanted, atol=3e-3, err_msg=field_name)
    assert np.ptp(after["y4"]["rate"]) > 0.01
    assert "weight" in seen.page.locator("#history-values").text_content()
    keep(seen, "synapse")
    assert seen.complaints == []


def test_a_synapse_can_be_named_and_its_sample_changed(
    seen: Visit, recorded: dict[str, Trace]
) -> None:
    seen.page.locator("#connection").select_option("input->hidden")
    before, busy = history(seen), int(recorded["rate"].rate("hidden", "free").std(axis=0).argmax())
    seen.page.locator("#from").fill("9")
    seen.page.locator("#to").fill(str(busy))
    seen.page.locator("#synapse-sample").focus()
    seen.page.keyboard.press("Home")
    named = history(seen)
    assert named != before
    assert len(set(named["y"]["rate"])) == 1, "an input does not change"
    seen.page.keyboard.press("ArrowRight")
    assert history(seen)["y2"] != named["y2"]
    assert seen.page.locator("#which").text_content().startswith("sample 1,")
    seen.page.locator("#view").select_option("rate.h5")
    caption = seen.page.locator("figure:has(#matrix) figcaption")
    assert caption.text_content() == "Hebbian update, rate"
    assert seen.complaints == []


def test_runs_stand_side_by_side(browser: Browser, make_run: Fill, tmp_path: Path) -> None:
    one, two = make_run(tmp_path / "one"), make_run(tmp_path / "two")
    with visit(browser, report(one, two)) as both:
        curves = "document.getElementById('accuracy').data.map(each => each.name)"
        assert both.page.evaluate(curves) == ["one", "two"]
        both.page.locator("#left").select_option(f"{two}/traces.h5")
        both.page.locator("#simulator").select_option("traces.h5")
        assert course(both, "rates") == course(both, "firing")
        caption = both.page.locator("figure:has(#rates) figcaption")
        assert caption.text_content() == "Firing rates, reference, two"
        both.page.locator("#runs-table th button").nth(0).click()
        both.page.locator("#runs-table th button").nth(0).click()
        assert column(both, "runs-table", 0) == ["two", "one"]
        keep(both, "two-runs")
        assert both.complaints == []


def test_every_chip_has_its_dot_with_its_range_or_its_reason_and_the_best_trade_its_star(
    browser: Browser, chip_estimate: Callable[..., EnergyEstimate], tmp_path: Path
) -> None:
    points = (Point("rate", 4, 0.9, 1e-6, 1e-7, 1e-5), Point("rate", 8, 0.9, 2e-6, 1e-7, 1e-5))
    chips = (
        chip_estimate("small", None, fits=False, reason="does not fit: too few cores"),
        chip_estimate("a", 1e-6, curve=points),
        chip_estimate("b", 1e-3, Boundary.BOARD_TOTAL),
    )
    curve = CurveSettings(20, (4, 8), {})
    EnergyReport(chips, curve=curve).save(tmp_path / "energy.json")
    (tmp_path / "study.toml").write_text('dataset = "digits"\n')
    with visit(browser, report(tmp_path)) as seen:
        notes = "document.getElementById('chips').layout.annotations.map(each => each.text)"
        result = seen.page.evaluate(notes)
        assert result[:2] == ["<i>inside chip total</i>", "<i>inside board total</i>"]
        assert result[2:] == ["<i>no joules</i>", "does not fit: too few cores"]
        dots = "document.getElementById('chips').data.at(-1)"
        assert seen.page.evaluate(f"{dots}.x") == pytest.approx([-6.0, -3.0])
        above, below = (seen.page.evaluate(f"{dots}.error_x.{a}") for a in ("array", "arrayminus"))
        ends = [(np.log10(e.high / e.joules), np.log10(e.joules / e.low)) for e in chips[1:]]  # type: ignore[operator]
        assert list(zip(above, below, strict=True)) == [pytest.approx(each) for each in ends]
        seen.page.locator("#use").select_option("learning")
        assert len(seen.page.evaluate(notes)) == 4
        last = "document.getElementById('trade').data.at(-1)"
        star = seen.page.evaluate(f"{last}.name"), seen.page.evaluate(f"{last}.marker.symbol")
        assert star == ("best trade: rate, 4 steps", "star")
        assert seen.complaints == []


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
    assert column(seen, "simulators-table", 0) == ["emulator", "rate", "reference"]
    for _ in range(2):
        seen.page.locator("#simulators-table th button").nth(2).click()
        assert column(seen, "simulators-table", 2)[-1] == ""


def test_dark_redraws_and_paper_is_white(seen: Visit) -> None:
    ink = "document.getElementById('rates').layout.font.color"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = seen.page.evaluate(ink)
    seen.page.emulate_media(color_scheme="dark")
    until(seen, f"() => {ink} !== '{light}'")
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
        assert seen.page.locator('img, a[href]:not([href^="#"]), svg a').count() == 0
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


def test_synapses_that_were_recorded_while_they_learned(browser: Browser, tmp_path: Path) -> None:
    words = ["learn", "--hidden", "8", "--epochs", "2", "--samples", "20", "--on", "reference"]
    assert main([*words, "--out", str(tmp_path / "run"), "--traces", "--watched", "6"]) == 0
    with visit(browser, report(tmp_path / "run")) as learned:
        assert learned.page.locator("#settling").count() == 1
        first = history(learned)
        assert set(first) == {"y", "y2", "y3", "y4", "y5"}
        watched = read(tmp_path / "run" / "traces.h5").hebbian["hidden->output"].synapses
        for target, source in watched[:2]:
            click(learned, target, source)
            until(
                learned,
                "text => document.querySelector('figure:has(#history) figcaption').textContent"
                ".startsWith(text)",
                f"hidden {source} → output {target}, presentation",
            )
            assert len(history(learned)["y5"]["reference, graded"]) == 48
        other = next(s for s in range(8) if (watched[0][0], s) not in watched)
        click(learned, watched[0][0], other)
        until(learned, "() => !document.getElementById('history-missing').hidden")
        keep(learned, "learned")
        assert learned.complaints == []


def test_following_the_hint_on_a_learning_run_adds_content(
    browser: Browser, tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    words = ["learn", "--hidden", "8", "--epochs", "2", "--samples", "20", "--on", "reference"]
    assert main([*words, "--out", run, "--traces"]) == 0
    words = ["simulate", run, "--on", "rate", "--phases", "--samples", "3"]
    assert main([*words, "--traces", f"{run}/rate.h5"]) == 0
    with visit(browser, report(run)) as seen:
        assert seen.page.locator("#settling").count() == 1
        listed = "[...document.getElementById('connection').options].map(each => each.value)"
        simulated = ["hidden->output", "input->hidden"]
        # Of the training, the connection with recorded synapses comes first.
        assert seen.page.evaluate(listed)[:3] == [*simulated, "hidden->output, training"]
        assert set(history(seen)["y5"]) == {"rate"}
        seen.page.locator("#connection").select_option("hidden->output, training")
        assert set(history(seen)["y5"]) == {"reference, graded, training"}
        assert "presentation" in seen.page.locator("#synapse-which").text_content()
        assert "sample" in seen.page.locator("#which").text_content()
        assert seen.complaints == []
