"""Matplotlib figures; every function returns the axes it drew on."""
