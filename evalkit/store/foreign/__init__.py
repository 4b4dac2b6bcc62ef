"""Results that other tools wrote, read as what they are: rates with the facts that the files state, and no more."""
