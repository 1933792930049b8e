"""Proofs about finished programs: accesses in bounds, no uninitialised reads, no races.

When: at the beginning of the build, if `TRACEJIT_VERIFY` is set; see `program`.
"""
