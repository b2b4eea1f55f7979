"""Gradients of the cost at equilibrium, for baselines, diagnostics and tests."""
