"""Fourier transforms of smooth lengths."""
