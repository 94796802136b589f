"""Roots and minima, found by bounded loops around the graph of a function."""
