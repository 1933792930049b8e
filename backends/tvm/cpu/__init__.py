"""The CPU: schedules, kernels, vector mathematics, LLVM text, and the build of a library."""
