"""Forms of operators that take the place of nodes which a runtime computes wrongly or slowly."""
