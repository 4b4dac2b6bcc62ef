"""How a run reads: terminal table and CSV/JSON export."""
