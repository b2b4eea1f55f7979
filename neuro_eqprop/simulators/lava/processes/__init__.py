"""Lava processes of a spiking network, and their models.

This folder holds process modules only, since Lava's compiler executes every module in it.
"""
