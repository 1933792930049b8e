"""Graph to graph: the passes that `pipeline` lists, in folders by what they are for.

In: the traced graph. Out: the graph that kernels are written from. `manager` runs, prints, verifies
and leaves out passes; each of them runs over the program, then over every loop body and branch.
"""
