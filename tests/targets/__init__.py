"""Targets beside the CPU: proof that the portable part of the compiler needs none in particular."""
