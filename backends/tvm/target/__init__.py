"""What the portable part of the compiler asks a target, and all that a new target has to answer.

`target.Target` is the object, with a file here for each of its parts; its numbers are
`ir.limits.Limits`. `cpu/target.py` is one, and `plain/target.py` the smallest.

When: `compile_on` is given a target; each stage asks its part.
"""
