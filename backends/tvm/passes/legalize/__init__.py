"""Legalisation: replaces ops without kernels by ops that have them.

When: collectives, tokens and dynamic shapes run first of all; composites (FFT, cofactors, Scan) in
the middle of the pipeline, after the passes that match them by name.
"""
