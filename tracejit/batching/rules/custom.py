"""CustomCall: the function is called for each element of the batch."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.batching.sequential import one_by_one
from tracejit.ops.custom import CUSTOM_CALL

batching.attach(CUSTOM_CALL)(one_by_one)
