"""Training cards and the label a score may carry."""
