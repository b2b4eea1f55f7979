"""Training of rate networks: the loop, the update rules, optimizers and true gradients."""
