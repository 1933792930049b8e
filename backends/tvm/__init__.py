"""The TVM backend: compiles a graph to a program of machine code (see `compile`)."""
