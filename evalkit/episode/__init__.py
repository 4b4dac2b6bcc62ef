"""One trial -> one record."""
