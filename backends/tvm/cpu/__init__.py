"""The CPU target: schedules, kernels, vector mathematics, LLVM text, and building a shared
library.
"""
