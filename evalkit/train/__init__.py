"""Training: demonstrations in, checkpoints with a training card out. Needs torch; never a simulator."""
