"""Energy and time of a network on a chip, from counted events."""
