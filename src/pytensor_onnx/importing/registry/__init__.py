"""Reading of models, the walk over their nodes, and the registry of operators."""
