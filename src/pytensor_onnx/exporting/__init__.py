"""Export of graphs to models, in four groups: requests, verification, program, files."""
