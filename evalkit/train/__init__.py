"""Training: data loading, the loop, checkpoints."""
