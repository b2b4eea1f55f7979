"""A spiking network as one Lava process, with the spikes of the reference.

Each folder below `native` holds the process modules of one form alone: for every process, Lava's
compiler executes all modules beside it.
"""
