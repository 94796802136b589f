"""The order of the rewrites, the walkers that apply them, and tests of nodes that they share."""
