"""The error of a training that cannot continue."""

DIVERGENCE_ADVICE = "use a smaller learning rate or beta, a spectral bound, or a bounded activation"


class TrainingError(RuntimeError):
    """Training cannot continue; the message gives the reason and what to change."""
