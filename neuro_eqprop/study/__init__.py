"""One experiment carried out, from data to report."""
