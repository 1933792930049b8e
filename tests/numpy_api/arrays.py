"""Arrays that the comparisons with NumPy share; none is ever written to."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(0)

F64 = RNG.normal(size=(3, 4))
F32 = F64.astype(np.float32)
F16 = F64.astype(np.float16)
S64 = RNG.integers(-5, 6, size=(3, 4))
U8 = RNG.integers(0, 9, size=(3, 4)).astype(np.uint8)
BOOL = F64 > 0
C64 = (F64 + 1j * F64[::-1]).astype(np.complex64)
ROW = RNG.normal(size=4)
COUNT = np.arange(5.0)
CUBE = RNG.normal(size=(2, 3, 4))
WHOLE = np.arange(24).reshape(2, 3, 4)
SPECIAL = F64.copy()
SPECIAL[0, 1], SPECIAL[1, 2], SPECIAL[2, 0], SPECIAL[2, 1] = np.nan, np.inf, -np.inf, -0.0

for _array in (F64, F32, F16, S64, U8, BOOL, C64, ROW, COUNT, CUBE, WHOLE, SPECIAL):
    _array.flags.writeable = False
