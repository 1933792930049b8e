"""Fast Fourier transforms of lengths with small prime factors.

When: in `lower`, for a Fourier transform.
"""
