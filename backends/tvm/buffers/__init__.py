"""Buffer assignment: the argument, result, shared buffer or workspace offset of every array.

In: a fusion plan. Out: an offset for every array, which calls of kernels refer to.

When: in `lower`, after fusion, while kernels are written; offsets are packed when all are.
"""
