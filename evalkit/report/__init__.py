"""How results read: tables, CSV, JSON."""
