"""A third-party package with an entry for each registry: a model, an activation, a backend, ..."""
