"""Ops that no kernel knows become ops that kernels know.

First of all run collectives, tokens, dynamic shapes; composites (FFT, cofactors, Scan) in the
middle of the pipeline, after the passes that look for them by name.
"""
