"""Reading and writing NIR files."""
