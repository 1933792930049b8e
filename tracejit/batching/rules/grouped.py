"""RaggedDot and ScaledDot are taken one after the other."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.batching.sequential import one_by_one
from tracejit.ops.grouped import RAGGED_DOT, SCALED_DOT

batching.attach(RAGGED_DOT, SCALED_DOT)(one_by_one)
