"""Kernels of ops that have schedules of their own (reductions, contractions, sorts …), by op
family.
"""
