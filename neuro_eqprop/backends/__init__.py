"""Simulators of the spiking description."""
