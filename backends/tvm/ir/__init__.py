"""Common data structures of the compiler: internal ops, graphs, TIR, element types, indices.

Nothing here depends on a pass or a target.

When: all stages use it; nothing here runs on its own.
"""
