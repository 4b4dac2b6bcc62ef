"""One file per command: parse, one call, print."""
