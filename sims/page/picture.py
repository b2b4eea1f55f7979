"""The README's picture: the head of a run's report and its settling, as a browser shows them.

python sims/page/picture.py RUN docs/pictures/report.png
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from neuro_eqprop import open_trace, report
from neuro_eqprop.html_report.sections.settling import output_change

WIDTH, SAMPLES = 1180, 30


def main() -> None:
    """Take it."""
    run, out = Path(sys.argv[1]), Path(sys.argv[2])
    page_path = report(run)
    browser_path = next(
        path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))
    )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(page_path.resolve().as_uri())
        page.add_style_tag(
            content="section:not(#settling), footer, #settling .made { display: none }"
            " header { padding-top: 1rem } #settling figure:has(#raster) { display: none }"
        )
        # The sample that the nudge moves most shows what the phases do.
        moved = int(output_change(open_trace(run / "rate.h5"), SAMPLES).argmax())
        page.locator("#sample").evaluate(
            "(slider, k) => { slider.value = k; slider.dispatchEvent(new Event('input')); }", moved
        )
        page.locator("body").screenshot(path=out)
        browser.close()
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
