"""Where arrays lie: in an argument, a result, another array's buffer, or the workspace.

In: a plan. Out: an offset for every array, which calls of kernels name.
"""
