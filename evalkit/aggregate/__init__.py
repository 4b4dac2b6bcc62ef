"""What the records mean: coverage, proportions, suite scores."""
