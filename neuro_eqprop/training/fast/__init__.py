"""Fast paths of training, each equal to the phases of `training.rules.phases` at equilibrium.

`one_hidden` is compiled for one dense hidden layer. `chain` serves every other network of linear
couplings (perceptrons, convolutions with pooling, looped layers, pyramids), whose layers and
couplings `structure` finds; `displacement` computes the update of a batch.
"""
