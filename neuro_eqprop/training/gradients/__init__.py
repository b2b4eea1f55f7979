"""True gradients of the cost at equilibrium, for baselines and tests."""
