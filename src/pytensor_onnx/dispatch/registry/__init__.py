"""The registry of lowerings, and the conversion of graphs by it."""
