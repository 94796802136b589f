"""The networks of the benchmarks in PyTorch, which is all that this package needs.

``python -m benchmarks.torch_networks`` reads a line of JSON that names a network and what it is
built from, and then one for each call; it answers each with a line.
"""
