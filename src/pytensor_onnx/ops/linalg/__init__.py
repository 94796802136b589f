"""Ops of linear algebra."""
