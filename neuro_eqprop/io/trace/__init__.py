"""Traces in HDF5."""
