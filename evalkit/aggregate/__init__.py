"""What the records of a run mean: counts, rates with intervals, suite scores, and what may be said of them. Pure."""
