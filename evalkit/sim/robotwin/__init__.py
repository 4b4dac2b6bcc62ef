"""RoboTwin's own task code, run in its own interpreter."""
