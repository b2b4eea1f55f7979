"""Sweeps: many trainings with different settings, each evaluated as spikes and on chips."""
