"""A third-party package with a model, an update rule and a data set."""
