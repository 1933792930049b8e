"""Proofs about finished programs: accesses in bounds, no reads of unwritten memory, no races."""
