"""CustomCall: the function registered for its target, called back, or its kernel in the program."""

from __future__ import annotations

from tracejit.backends.tvm.library import library_call
from tracejit.backends.tvm.roots import rooted
from tracejit.ops.custom import CUSTOM_CALL

rooted.attach(CUSTOM_CALL)(library_call)
