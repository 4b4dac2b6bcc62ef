"""Checks of what RoboTwin needs on a machine; ``evalkit doctor`` shows them."""
