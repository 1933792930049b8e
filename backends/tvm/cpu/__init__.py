"""The CPU target: schedules, kernels, vector mathematics, LLVM text, and building a shared
library.

When: `lower` asks its schedules, then `objects` builds the program.
"""
