"""Lava processes of a network that learns, each with its model, and nothing else.

They are in a separate folder, like those in `neuro_eqprop.backends.lava.processes`.
"""
