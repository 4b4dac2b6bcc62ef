"""Which trials exist: accepted seeds and the plan. Pure values and small files, no simulator."""
