"""From an optimised graph to a program: one kernel after the other, then memory.

In: the graph of `pipeline.optimized`. Out: a `Program`. Equal kernels are folded at the end.
"""
