"""Rate networks: fixed-point map, energy, inference, spectral bounds, conversion with torch."""
