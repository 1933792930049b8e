"""The TVM backend: compiles a graph to a program of machine code (see `compile`).

When: in the process that compiles, for a program that is not in the disk cache.
"""
