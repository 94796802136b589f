"""Lowerings of branches and checks."""
