"""Banned phrases that each folder still has (see `plain_english`): the numbers only go down."""

from __future__ import annotations

ALLOWED: dict[str, int] = {
    "autodiff/rules": 1,
    "tracejit/ffi": 1,
    "tracejit/runtime/devices": 3,
    "tracejit/sharding": 4,
    "tracejit/trace": 3,
    "tracejit/transforms/autograph": 1,
}
