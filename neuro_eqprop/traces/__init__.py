"""Traces in HDF5 files, and their export."""
