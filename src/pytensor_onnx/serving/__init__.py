"""Folders that servers of models load."""
