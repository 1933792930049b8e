"""Passes over whole modules that need no target: donation, layouts, recomputation, costs."""
