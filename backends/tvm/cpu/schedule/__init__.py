"""Schedules: the loops of each kind of kernel, apart from what is computed in them."""
