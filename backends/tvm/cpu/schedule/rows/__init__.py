"""Row kernels: several reductions and pointwise phases over each row while it is in cache."""
