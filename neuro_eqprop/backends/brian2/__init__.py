"""Brian2 simulations, in discrete steps and in continuous time."""
