"""A network of processes that ship with Lava, as one Lava process."""
