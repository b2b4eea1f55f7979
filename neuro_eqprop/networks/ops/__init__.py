"""Array operations of rate networks, one implementation for each array library."""
