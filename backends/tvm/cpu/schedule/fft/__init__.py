"""Fast Fourier transforms of lengths with small prime factors."""
