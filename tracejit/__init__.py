"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""
