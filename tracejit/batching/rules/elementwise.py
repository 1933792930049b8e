"""Ops of two and three operands."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.batching.pointwise import pointwise
from tracejit.ops.base import family

batching.attach(*family("elementwise"))(pointwise)
