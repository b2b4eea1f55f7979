"""What a network is: layers, connections, activations, operators, architectures, parameters."""
