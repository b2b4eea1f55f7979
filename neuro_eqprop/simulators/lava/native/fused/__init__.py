"""A network as one Lava process that steps many samples side by side."""
