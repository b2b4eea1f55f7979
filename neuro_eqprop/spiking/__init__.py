"""Spiking networks: the description, and what is done with it before a run."""
