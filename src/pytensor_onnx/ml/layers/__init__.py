"""Rewrites that replace layers of pytensor-ml by operations of `nn`."""
