"""Lava processes that users connect themselves.

This folder holds process modules only: to find process models, Lava imports every module in the
folder of a process.
"""
