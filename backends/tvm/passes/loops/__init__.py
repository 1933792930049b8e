"""Loop passes: vectorisation, fusion, constant and dead state, hoisting of contractions.

When: `vectorize` runs once over the program; the others over each graph, before and after Scans
become Whiles.
"""
