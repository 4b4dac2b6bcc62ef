"""What each harness of ``throughput.py`` needs to run the same world and policy."""
