"""What is measured and what it may be called: task configurations, modes, labels, protocols, compatibility."""
