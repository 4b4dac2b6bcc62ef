"""Who runs the trials: jobs, workers, the scheduler, and Ray (the only package that imports it)."""
