"""Look up known weaknesses of the pinned packages; without a network this is said and passes.

python sims/attack/audit.py .constraints.txt
"""

from __future__ import annotations

import json
import subprocess
import sys


def main(pins: str) -> int:
    """Exit code 1 if a pinned package has a known weakness."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", pins, "--no-deps"]
    command += ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        found = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        print("audit: the packages could not be looked up (no network?); not audited")
        return 0
    audited = [each for each in found if "vulns" in each]
    bad = [each for each in audited if each["vulns"]]
    print(f"audit: {len(audited)} of {len(found)} packages looked up, {len(bad)} with weaknesses")
    for each in bad:
        ids = ", ".join(weakness["id"] for weakness in each["vulns"])
        print(f"  {each['name']} {each['version']}: {ids}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
