"""Questions about graphs: what a loop counts, which rows are needed, what an op costs.

In: instructions. Out: facts. Nothing is changed here; passes, fusion and code generation ask.
"""
