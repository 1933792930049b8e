"""Fft, left to the interpreter."""

from __future__ import annotations

from tracejit.backends.tvm.library import library_call
from tracejit.backends.tvm.roots import rooted
from tracejit.ops.spectra import FFT

rooted.attach(FFT)(library_call)
