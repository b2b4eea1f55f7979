"""Rate networks at work, in NumPy and in torch."""
