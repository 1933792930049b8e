"""Loop re-rolling: equal steps that Python unrolled become loops again.

Runs once over the program, before it is canonicalised, where a graph is long.
"""
