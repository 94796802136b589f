"""Ops of this package: loop checks, draws, running extremes, network operations."""
