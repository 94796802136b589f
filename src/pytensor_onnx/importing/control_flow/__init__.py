"""Branches, sequences and optional values of models."""
