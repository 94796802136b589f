"""Static web pages around models."""
