"""Lava processes that users connect themselves.

This folder holds process modules alone: Lava imports every module beside the one that defines a
process when it searches for process models.
"""
