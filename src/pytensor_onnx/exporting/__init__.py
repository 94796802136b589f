"""Export of graphs to models: arguments, programs, verification, reports, training steps."""
