"""Portable files in runtimes of other makers: `python -m tests.runtimes` writes the table."""
