"""Availability of packages, simulators, tools and data sets on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from neuro_eqprop import __version__, data
from neuro_eqprop.common.plugins import PluginError
from neuro_eqprop.files.subprocess import capture
from neuro_eqprop.simulators.base import BackendInfo
from neuro_eqprop.simulators.lava import BACKEND as LAVA
from neuro_eqprop.simulators.lava.install import ADAPTED, COMMAND, DISTRIBUTION
from neuro_eqprop.simulators.registry import BACKENDS, installed, unavailable

EXTRAS = {"pynwb": "nwb", "pandas": "nwb", "dask": "cluster"}
"""Optional packages, and the extra of neuro_eqprop that installs each."""
PACKAGES = ("numpy", "torch", "lava-nc", "brian2", "snntorch", "h5py", "safetensors", "plotly")
"""Packages whose versions are stored with results."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True, slots=True)
class Availability:
    """Result of the check of one item.

    Parameters
    ----------
    thing : str
        Name of the item.
    here : bool
        Whether it is available.
    note : str
        Its version or path, or how to get it.
    """

    thing: str
    here: bool
    note: str


def versions() -> dict[str, str]:
    """Return the versions of Python, neuro_eqprop and the packages that results depend on."""
    found = {name: installed(name) for name in PACKAGES}
    own = {"neuro_eqprop": __version__, "python": sys.version.split()[0]}
    return own | {name: number for name, number in found.items() if number}


def backend_availability(name: str) -> Availability:
    """Check whether a backend can run."""
    try:
        info = BACKENDS[name]
    except PluginError as error:
        return Availability(f"backend {name}", False, str(error))
    reason = unavailable(info) or broken_side_environment(info)
    return Availability(f"backend {name}", reason is None, reason or info.summary)


def broken_side_environment(info: BackendInfo) -> str | None:
    """Return why the Python in the backend's environment variable cannot run it, or None."""
    named = os.environ.get(info.python_variable) if info.python_variable else None
    if not named:
        return None
    code = "import importlib.metadata as m, sys; [m.version(name) for name in sys.argv[1:]]"
    try:
        done = capture([named, "-I", "-c", code, *info.requires])
    except OSError:
        return f"{info.python_variable} names {named!r}, which cannot be run"
    if done.returncode:
        return f"{info.python_variable} names {named!r}, which lacks {' '.join(info.requires)}"
    return None


def how_to_install(name: str) -> str:
    """Return how to install a package."""
    for info in BACKENDS.loadable().values():
        if name in info.requires and info.install:
            return info.install
    if name in EXTRAS:
        return f"optional: pip install 'neuro_eqprop[{EXTRAS[name]}]'"
    return f"pip install {name}"


def lava_note(number: str | None) -> str | None:
    """Which Lava this is, and where the backends run it, or None if there is none here."""
    here, elsewhere = number, os.environ.get(LAVA.python_variable)
    if number == ADAPTED:
        here = f"{number}, as `{COMMAND}` makes it"
    elif number is not None and sys.version_info >= (3, 11):
        here = f"{number} as published: one line changes when it is imported after neuro_eqprop"
    if not elsewhere:
        return here
    return f"{here or 'not here'}; backends run it in {elsewhere} ({LAVA.python_variable})"


def check_environment() -> list[Availability]:
    """Check the packages, simulators, tools and data sets that neuro_eqprop can use.

    Returns
    -------
    list of Availability
        One for each item: `thing`, whether it is `here`, and a `note` with its version or how to
        get it.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> [found.here for found in ne.check_environment() if found.thing == "numpy"]
    [True]
    """
    findings = [Availability("python", True, sys.version.split()[0])]
    for name in (*PACKAGES, *EXTRAS):
        number = installed(name)
        note = lava_note(number) if name == DISTRIBUTION else number
        findings.append(Availability(name, number is not None, note or how_to_install(name)))
    findings += [backend_availability(name) for name in BACKENDS]
    compiler = shutil.which("gcc") or shutil.which("cc")
    note = compiler or (
        "optional: without one, `to_brian2` networks run in Brian2's NumPy mode "
        "(Debian: apt install g++)"
    )
    findings.append(Availability("compiler", compiler is not None, note))
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    note = browser or (
        "optional: the tests of the report page need one (Debian: apt install chromium)"
    )
    findings.append(Availability("browser", browser is not None, note))
    places = data.summary()
    for name, entry in data.DATASETS.items():
        lacking = data.missing(entry)
        note = lacking or places[name]
        findings.append(Availability(f"data set {name}", lacking is None, note))
    return findings
