from neuro_eqprop.files.traceviews import open_trace as open_trace

__version__: str
