"""LLVM IR as text, written without TVM: functions over vectors, and TIR kernels translated to
LLVM.
"""
