"""Interfaces of other packages that are not public, each in one place."""
