"""Equilibrium Propagation from rates to spikes: train, translate, simulate, compare, count."""

__version__ = "0.1.0"
