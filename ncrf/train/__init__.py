"""Training: the loop over batches, optimizers and schedules, and the model folder."""
