"""Convolutions of signals in every dtype."""
