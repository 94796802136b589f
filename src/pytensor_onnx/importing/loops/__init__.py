"""Loops of models: scans of tensors and of sequences."""
