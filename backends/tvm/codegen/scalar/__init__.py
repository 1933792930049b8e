"""Kernels as plain loops, one element after the other: what every target can start from."""
