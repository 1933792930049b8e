"""How the threads of a GPU share reductions, rows, transposes and products."""
