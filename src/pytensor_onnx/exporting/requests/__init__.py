"""Requests for models: arguments, graphs, names, and the types of inputs and results."""
