"""What all parts of the compiler speak: internal ops, graphs, TIR, element types, indices.

Nothing here knows a pass or a target.
"""
