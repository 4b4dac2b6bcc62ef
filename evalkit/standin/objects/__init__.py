"""Stand-in objects, one function each."""
