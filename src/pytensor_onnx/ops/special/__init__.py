"""Ops of special functions."""
