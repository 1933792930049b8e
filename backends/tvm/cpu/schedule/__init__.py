"""Schedules: the loop nest of each kind of kernel, independent of the computation inside."""
