"""Evaluates small graphs of which a test states the numbers: by the interpreter and by XLA.

evaluated(lambda x: ops.reduce_sum(x, [0]), np.ones((2, 3)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from tests.building import computation
from tests.judge import run_xla
from tests.samples.values import BEYOND_XLA
from tracejit.backends.numpy import evaluate
from tracejit.graph import Instruction, Module
from tracejit.shapes import element_type_of, shape_of
from tracejit.verifier import verify


def evaluated(function: Callable[..., Instruction], *values: Any) -> Any:
    """The value of what ``function`` builds from parameters of the values' shapes.

    Fails unless the interpreter and the real XLA, where it has the element types, agree to the
    last bit.
    """
    arrays = [np.asarray(value) for value in values]
    entry = computation("main", function, *map(shape_of, arrays))
    module = Module("example", entry)
    verify(module)
    ours = evaluate(entry, arrays)
    known = not BEYOND_XLA & {element_type_of(array.dtype) for array in arrays}
    theirs = run_xla(module, *arrays) if known else ours
    if isinstance(ours, tuple):
        for mine, other in zip(ours, theirs, strict=True):
            assert_array_equal(mine, other)
    else:
        assert_array_equal(ours, theirs)
    return ours
