"""Task configurations and protocols: what a number is a number of."""
