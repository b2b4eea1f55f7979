"""A network that learns, as one Lava process."""
