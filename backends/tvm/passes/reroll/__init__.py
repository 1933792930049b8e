"""Loop re-rolling: equal iterations that Python unrolled become a loop again.

When: once over the program, before it is canonicalised, if the graph is long.
"""
