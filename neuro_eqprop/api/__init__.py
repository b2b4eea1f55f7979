"""What people hold: models, spiking models, the estimator."""
