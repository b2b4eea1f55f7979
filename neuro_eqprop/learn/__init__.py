"""Learning rates: the local rule, the episode, the training loop, true gradients."""
