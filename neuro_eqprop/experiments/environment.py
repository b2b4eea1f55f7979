"""Installed packages, simulators, tools and data sets of this machine."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

from neuro_eqprop import __version__, data
from neuro_eqprop.backends.registry import BACKENDS, installed, unavailable
from neuro_eqprop.plugins import PluginError

PACKAGES = ("numpy", "torch", "lava-nc", "brian2", "snntorch", "h5py", "safetensors", "plotly")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True, slots=True)
class Finding:
    """A checked item: whether it is available, and its version or how to get it."""

    thing: str
    here: bool
    note: str


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on."""
    found = {name: installed(name) for name in PACKAGES}
    own = {"neuro_eqprop": __version__, "python": sys.version.split()[0]}
    return own | {name: number for name, number in found.items() if number}


def backend_finding(name: str) -> Finding:
    """Whether a backend can run here."""
    try:
        info = BACKENDS[name]
    except PluginError as error:
        return Finding(f"backend {name}", False, str(error))
    reason = unavailable(info)
    return Finding(f"backend {name}", reason is None, reason or info.summary)


def check_environment() -> list[Finding]:
    """Check everything that the package can use."""
    findings = [Finding("python", True, sys.version.split()[0])]
    for name in PACKAGES:
        number = installed(name)
        findings.append(Finding(name, number is not None, number or f"pip install {name}"))
    findings += [backend_finding(name) for name in BACKENDS]
    compiler = shutil.which("gcc") or shutil.which("cc")
    note = compiler or "optional: Brian2's other targets and building packages need one"
    findings.append(Finding("compiler", compiler is not None, note))
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    note = browser or "optional: the tests of the report page need one (Debian: chromium)"
    findings.append(Finding("browser", browser is not None, note))
    places = data.summary()
    for name, entry in data.DATASETS.items():
        lacking = data.missing(entry)
        note = lacking or places[name]
        findings.append(Finding(f"data set {name}", lacking is None, note))
    return findings
