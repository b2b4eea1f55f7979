"""Lava simulations in a child process."""
