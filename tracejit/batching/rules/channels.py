"""Send and Recv: what a channel carries is not followed, so that no batch can go through one."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE

for _op in (SEND, SEND_DONE, RECV, RECV_DONE):
    batching.decline(_op, "cannot be batched, because what a channel carries is not followed")
