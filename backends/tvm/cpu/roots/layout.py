"""Pad, Concatenate and DynamicUpdateSlice: each part as the CPU makes elements on their own."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.scalar import layout
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.ops.layout import CONCATENATE, DYNAMIC_UPDATE_SLICE, PAD

rooted.attach(PAD)(layout.pad)
rooted.attach(CONCATENATE)(layout.concatenate)
rooted.attach(DYNAMIC_UPDATE_SLICE)(layout.dynamic_update_slice)
