"""`python -m neuro_eqprop` is `neuro-eqprop`."""

import os
import sys

# With `-m`, Python searches the current folder first: a json.py there would run as ours.
sys.path[:] = [place for place in sys.path if place and place != os.getcwd()] + [
    place for place in sys.path if place == os.getcwd()
]

from neuro_eqprop.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
