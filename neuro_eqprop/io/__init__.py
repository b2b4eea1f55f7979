"""File formats: reading with checks, writing atomically."""
