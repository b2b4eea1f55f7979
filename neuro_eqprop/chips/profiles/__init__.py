"""Hardware profiles in TOML."""
