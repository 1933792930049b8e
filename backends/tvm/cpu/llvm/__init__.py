"""LLVM's text, written without TVM: functions over vectors, and kernels translated from TIR."""
