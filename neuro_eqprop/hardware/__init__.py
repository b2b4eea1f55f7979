"""Chips: their profiles, and the placement of a network on their cores."""
