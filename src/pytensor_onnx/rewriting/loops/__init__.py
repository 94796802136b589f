"""Rewrites of loops: checks, shorter traces, and batched graphs in place of loops."""
