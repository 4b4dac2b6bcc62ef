"""What happened: a run's folder, its append-only records, and what remains to be done."""
