"""Lava processes of the tests, alone in their folder: Lava executes all modules beside them."""
