"""The TVM backend: a graph in, a program of machine code out (see `compile`)."""
