"""Batching as a pass over the graph: what was made for one element, for a whole batch at once."""
