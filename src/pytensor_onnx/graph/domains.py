"""Domains of model-local functions."""

FUNCTION_DOMAIN = "pytensor"

STANDARD_DOMAIN = "pytensor.standard"
"""Domain of functions whose name determines the computation, in every file.

Runtimes may have kernels for them. No function of a user, and none whose name tells less than its
body depends on, is in this domain.
"""

DOMAINS = {FUNCTION_DOMAIN: 1, STANDARD_DOMAIN: 1}
"""Versions of the domains of functions."""
