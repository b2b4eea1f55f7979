"""Lava processes of the spiking description, each with its model, and nothing else.

Lava's compiler executes every module in the folder of a process, hence a folder for them alone.
"""
