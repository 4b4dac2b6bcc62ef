"""What happened: append-only records, the run folder, what remains."""
