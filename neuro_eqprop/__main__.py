"""Entry point of `python -m neuro_eqprop`, the same as `neuro-eqprop`."""

import os
import sys

# With `-m`, Python searches the current folder first, so a json.py there would shadow json.
sys.path[:] = [place for place in sys.path if place and place != os.getcwd()] + [
    place for place in sys.path if place == os.getcwd()
]

from neuro_eqprop.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
