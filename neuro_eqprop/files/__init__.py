"""Our own formats on disk."""
