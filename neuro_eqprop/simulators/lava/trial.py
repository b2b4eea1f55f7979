"""Run two Lava processes, a source and a sink, and exit with an error if a value is lost.

`neuro-eqprop lava install` runs this file in a new Python after it has installed Lava.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Send three values from one process to another."""
    import numpy as np
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    data = np.array([[1.0, 2.0, 3.0]])
    source, sink = Source(data=data), Sink(shape=(1,), buffer=3)
    source.s_out.connect(sink.a_in)
    sink.run(condition=RunSteps(3), run_cfg=Loihi2SimCfg(select_tag="floating_pt"))
    arrived = sink.data.get()
    sink.stop()
    if arrived.tolist() != data.tolist():
        sys.exit(f"sent {data.tolist()}, and {arrived.tolist()} arrived")


if __name__ == "__main__":
    main()
