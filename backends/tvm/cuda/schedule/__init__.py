"""How the threads of a GPU share reductions, rows, transposes and products.

When: in `lower`, once for each kernel.
"""
