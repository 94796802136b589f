"""Ops of random draws."""
