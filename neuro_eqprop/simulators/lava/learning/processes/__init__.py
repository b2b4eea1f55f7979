"""Lava processes of a network that learns, and their models.

This folder holds process modules only, as does `neuro_eqprop.simulators.lava.processes`.
"""
