"""Demonstrations: the HDF5 layout, verification, collection."""
