"""The use cases: train, evaluate, simulate, learn on chip, translate."""
