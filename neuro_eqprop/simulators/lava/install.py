"""Lava on Pythons newer than 3.10, for which pip refuses it.

lava-nc 0.10.0 declares Python 3.10 and old versions of what it depends on. One line of it stands in
the way of newer Pythons: a data class without a hash is the default of a field. `install_lava`
fetches the published wheel, changes that line, drops the upper bounds, and installs the result
under the version 0.10.0+ne1, which `lava-nc==0.10.0` accepts.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from neuro_eqprop.common.lava_import import HASHABLE, MODULE, SOURCE
from neuro_eqprop.files.subprocess import capture
from neuro_eqprop.files.write import new_file, temporary_folder

DISTRIBUTION, PUBLISHED = "lava-nc", "0.10.0"
ADAPTED = f"{PUBLISHED}+ne1"
"""Version of the wheel with the line changed."""
WHEEL_SHA256 = "d646723e888a72868dac77d31beee3eef1f540366a8c1a8578a2dc3302470926"
"""Checksum of the published wheel."""
COMMAND = "neuro-eqprop lava install"
"""The command that installs Lava into this environment."""
TRIAL = Path(__file__).with_name("trial.py")
"""Script that runs two Lava processes and prints what arrived."""
TRIAL_SECONDS = 120.0


class InstallError(RuntimeError):
    """Lava could not be installed; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class LavaInstallation:
    """Lava in this environment.

    Parameters
    ----------
    version : str
        Version of lava-nc; 0.10.0+ne1 is the adapted wheel.
    python : str
        Version of this Python.
    changed : bool
        Whether this call installed it; False if it was there and runs.
    """

    version: str
    python: str
    changed: bool


def install_lava(*, announce: Callable[[str], None] = lambda _: None) -> LavaInstallation:
    """Install lava-nc into the environment of this Python, and try it.

    Python 3.10 gets the published wheel; newer ones the wheel made anew with one line changed. A
    run of two processes must succeed.

    Parameters
    ----------
    announce : callable, optional
        Called with a sentence before each step.

    Returns
    -------
    LavaInstallation

    Raises
    ------
    InstallError
        If pip fails, the wheel is not the published one, or the run of two processes fails.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.install_lava().version  # doctest: +SKIP
    '0.10.0+ne1'
    """
    here = ".".join(map(str, sys.version_info[:3]))
    wanted = PUBLISHED if sys.version_info < (3, 11) else ADAPTED
    changed = installed_version() not in (wanted, ADAPTED)
    if changed:
        with temporary_folder() as folder:
            announce(f"fetching {DISTRIBUTION} {PUBLISHED}")
            wheel = download(folder)
            if wanted == ADAPTED:
                wheel = adapt(wheel)
            announce(f"installing {wheel.name}")
            pip("install", "--quiet", str(wheel))
    announce("trying a run of two processes")
    try_lava()
    return LavaInstallation(wanted if changed else str(installed_version()), here, changed)


def installed_version() -> str | None:
    """The version of lava-nc in this environment, or None."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def pip(*arguments: str) -> None:
    """Run pip in this environment."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = capture(command)
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise InstallError(
                f"this environment has no pip; `{sys.executable} -m ensurepip` adds it"
            )
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = " ".join(lines) or done.stderr.strip()[-500:]
        raise InstallError(f"pip {arguments[0]} failed: {reason}")


def download(folder: Path) -> Path:
    """Fetch the published wheel into the folder, and check that it is the one known."""
    wanted = f"{DISTRIBUTION}=={PUBLISHED}"
    pip("download", "--quiet", "--no-deps", "--ignore-requires-python", "-d", str(folder), wanted)
    (wheel,) = folder.glob("*.whl")
    if sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise InstallError(
            f"{wheel.name} is not the wheel of {DISTRIBUTION} {PUBLISHED} as it was published: its "
            f"SHA-256 differs; check which package index pip uses"
        )
    return wheel


def adapt(wheel: Path) -> Path:
    """Write the wheel with the line changed and without upper bounds, beside the published one."""
    made = wheel.with_name(wheel.name.replace(f"-{PUBLISHED}-", f"-{ADAPTED}-"))
    before, after = (f"lava_nc-{each}.dist-info" for each in (PUBLISHED, ADAPTED))
    rows: list[str] = []
    with (
        ZipFile(wheel) as original,
        new_file(made) as file,
        ZipFile(file, "w", ZIP_DEFLATED) as changed,
    ):
        for entry in original.infolist():
            name, content = entry.filename.replace(before, after), original.read(entry)
            if name == f"{after}/RECORD":
                continue
            if name == f"{MODULE.replace('.', '/')}.py":
                content = hashable(content.decode()).encode()
            elif name == f"{after}/METADATA":
                content = unbounded(content.decode()).encode()
            changed.writestr(name, content)
            digest = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
        changed.writestr(f"{after}/RECORD", "".join([*rows, f"{after}/RECORD,,\n"]))
    return made


def hashable(source: str) -> str:
    """The source of Lava's module with a hash for its class of defaults."""
    if source.count(SOURCE) != 1:
        raise InstallError(f"{MODULE} does not hold the line to change; is it {PUBLISHED}?")
    return source.replace(SOURCE, HASHABLE)


def unbounded(metadata: str) -> str:
    """The metadata under the adapted version, for any Python, without upper bounds."""
    head, blank, body = metadata.partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith("Requires-Python:")]
    lines = [
        re.sub(r",?<=?[\d.]+", "", line).replace(" ()", "")
        if line.startswith("Requires-Dist:")
        else line.replace(f"Version: {PUBLISHED}", f"Version: {ADAPTED}")
        for line in lines
    ]
    return "\n".join(lines) + blank + body


def try_lava() -> None:
    """Run two Lava processes in a new Python; raise `InstallError` if that fails."""
    command = [sys.executable, "-W", "ignore", str(TRIAL)]
    try:
        done = capture(command, deadline=TRIAL_SECONDS)
    except TimeoutError:
        raise InstallError(
            f"two Lava processes did not finish within {TRIAL_SECONDS:.0f} s; "
            f"`{' '.join(command)}` shows where they stand"
        ) from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InstallError(f"Lava is installed but two processes did not run: {last[0]}")
