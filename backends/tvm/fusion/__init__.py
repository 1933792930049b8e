"""Fusion: groups instructions into kernels, and decides which arrays are materialised.

In: an optimised graph. Out: a `FusionPlan`, the kernels in order, which `lower` emits.

When: in `lower`, first: after all graph passes, for each loop body and branch as well.
"""
