"""Reference simulator in NumPy: the definition of the correct result."""
