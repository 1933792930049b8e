"""Proofs about finished programs: accesses in bounds, no uninitialised reads, no races."""
