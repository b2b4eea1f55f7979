"""Array arithmetic, spelled once for each library."""
