"""snnTorch simulation."""
