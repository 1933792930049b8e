"""From a program to a shared library: TIR passes, modules on threads, the linker.

In: a `Program`. Out: an artifact's bytes, or code for this process.
"""
