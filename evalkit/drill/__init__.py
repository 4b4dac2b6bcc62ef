"""The fault drill: runs of the fake backend in which something goes wrong, compared with one in which nothing did."""
