"""Graph passes, in folders by purpose; `pipeline` lists them in order.

When: first, before fusion.
In: the traced graph. Out: the graph that kernels are lowered from. `manager` runs, prints,
verifies and skips passes; each runs over the program, then over every loop body and branch.
"""
