"""Loops: vectorised, fused, freed of constant and dead state, their contractions hoisted.

`vectorize` runs once over the program; the others over each graph, before and after Scans become
Whiles.
"""
