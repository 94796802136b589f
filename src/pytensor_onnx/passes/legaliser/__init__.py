"""Replacement of nodes without a correct kernel on a target."""
