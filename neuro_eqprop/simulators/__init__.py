"""Backends: simulators that run a spiking network, and files that describe one."""
