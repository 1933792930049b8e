"""Equal graphs of fewer and cheaper instructions: folding, algebra, CSE, dead code.

`canonicalize` runs several times; the others once, after legalisation, before kernels are planned.
"""
