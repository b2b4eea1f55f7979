"""Lava processes of a network that learns, each with its model, and nothing else.

They have a folder of their own as those in `neuro_eqprop.backends.lava.processes` have.
"""
