"""Functions from functions to functions: jit, grad, vmap and their kin, each in a module."""
