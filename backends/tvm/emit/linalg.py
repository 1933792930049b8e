"""Cholesky and TriangularSolve, left to the interpreter."""

from __future__ import annotations

from tracejit.backends.tvm.library import library_call
from tracejit.backends.tvm.roots import rooted
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE

rooted.attach(CHOLESKY, TRIANGULAR_SOLVE)(library_call)
