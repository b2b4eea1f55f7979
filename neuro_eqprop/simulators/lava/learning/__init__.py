"""Learning with the Lava learning engine."""
