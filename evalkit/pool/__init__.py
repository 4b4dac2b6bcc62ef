"""Who runs the trials. The only package that imports ray."""
