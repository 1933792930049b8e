"""Row kernels: several reductions and pointwise steps over each row while it is in cache."""
