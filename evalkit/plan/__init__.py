"""Which trials exist: accepted seeds and the plan file."""
