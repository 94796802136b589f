"""The query of rewrites: which run, in which order, under which conditions."""
