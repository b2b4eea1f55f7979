"""`python -m neuro_eqprop` is `neuro-eqprop`."""

import sys

from neuro_eqprop.cli import main

if __name__ == "__main__":
    sys.exit(main())
