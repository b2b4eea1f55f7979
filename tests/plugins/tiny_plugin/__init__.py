"""A third-party package with a model, an update rule, a spike code, a backend and a data set."""
