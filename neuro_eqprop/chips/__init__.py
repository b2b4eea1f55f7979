"""Hardware profiles of chips, and the placement of networks on their cores."""
