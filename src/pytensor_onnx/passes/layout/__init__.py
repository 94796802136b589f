"""Passes that move Transposes past other operators and cancel them."""
