"""Steps that Python unrolled become loops again: `reroll`, and what makes steps look alike first.

Runs once over the program, before it is canonicalised, where a graph is long.
"""
