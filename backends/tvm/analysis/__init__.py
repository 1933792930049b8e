"""Analyses of graphs: trip counts, access regions, needed rows, costs. They never change a graph.

In: instructions. Out: facts, for passes, fusion and code generation.

When: passes, fusion and code generation ask them; none runs on its own.
"""
