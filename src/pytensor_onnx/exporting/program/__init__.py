"""Exported programs: export functions, the program class, and its methods."""
