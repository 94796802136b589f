"""Linear algebra of any size, batched in one loop, from the operators of every runtime."""
