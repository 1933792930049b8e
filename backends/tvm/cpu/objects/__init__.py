"""From a program to a shared library: TIR passes, LLVM modules compiled on threads, the linker.

In: a `Program`. Out: an artifact's bytes, or code for this process.

When: last, when the whole program is lowered.
"""
