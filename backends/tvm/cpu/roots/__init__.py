"""Ops with schedules of their own (reductions, contractions, sorts …): a file for each family."""
