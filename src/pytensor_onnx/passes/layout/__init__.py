"""Passes that move Transposes past other operators, cancel or split them."""
