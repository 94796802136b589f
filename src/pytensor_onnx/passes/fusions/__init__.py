"""Passes that make a model smaller and faster."""
