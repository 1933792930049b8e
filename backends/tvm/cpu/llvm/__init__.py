"""LLVM IR as text, written without TVM: functions over vectors, and TIR kernels translated to
LLVM.

When: procedures are written in `lower`; kernels are translated in `objects.build`, before TVM
compiles the others.
"""
