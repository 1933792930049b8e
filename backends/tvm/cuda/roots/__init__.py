"""Kernels of ops that need a schedule of their own, by the ops' families."""
