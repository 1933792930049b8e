"""Lowers an optimised graph to a program: kernels one by one, then memory.

In: the graph of `pipeline.optimized`. Out: a `Program`. Equal kernels are folded at the end.

When: after all graph passes, before the target builds the program.
"""
