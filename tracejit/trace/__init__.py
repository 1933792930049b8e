"""Tracing: abstract tensors, NumPy's protocols, in-place writes made functional."""
