"""`jit`: a function is traced and compiled once for each kind of arguments.

`jit` has the options, `jitted` the dispatch, `staging` the trace, `specialization` what is kept.
"""
