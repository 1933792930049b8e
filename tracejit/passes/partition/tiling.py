"""Tilings: which part of an array each partition has, read from HLO's shardings.

tiling("devices=[2,1]<=[2]", 2, 2)                             ((0, 1), (0, 0))
tiling("devices=[1,2,2]<=[4] last_tile_dim_replicate", 2, 4)   ((0, 0, 0, 0), (0, 0, 1, 1))
tiling("replicated", 2, 2)                                     ((0, 0), (0, 0))
tiling("manual", 2, 2)                                         None
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from tracejit.errors import AttributeValueError, UnsupportedError

Split = tuple[int, ...]
"""For each partition, which of equally long parts along one dimension it has."""

Tiling = tuple[Split, ...]
"""A split of each dimension. The partitions that have one part have the same."""

_TILED = re.compile(
    r"devices=\[(?P<sizes>[\d,]+)\]"
    r"(?:<=\[(?P<iota>[\d,]+)\](?:T\((?P<order>[\d,]+)\))?|(?P<numbers>[\d,]+))"
    r"(?P<replicate> last_tile_dim_replicate)?(?: last_tile_dims=\{(?P<last>[^}]*)\})?"
)


def count(split: Split) -> int:
    """Into how many parts the dimension is split."""
    return max(split, default=0) + 1


def whole(rank: int, partitions: int) -> Tiling:
    """Every partition has everything."""
    return ((0,) * partitions,) * rank


def is_product(splits: Sequence[Split], partitions: int) -> bool:
    """Whether every combination of parts is had by equally many partitions."""
    parts = Counter(zip(*splits, strict=True)) if splits else Counter({(): partitions})
    return len(parts) == math.prod(map(count, splits)) and len(set(parts.values())) == 1


def groups(along: Sequence[Split], others: Sequence[Split], partitions: int) -> list[list[int]]:
    """Partitions that differ ``along`` these splits alone, in the order of their parts."""
    found: dict[object, dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number in range(partitions):
        fixed = tuple(split[number] for split in others)
        found[fixed][tuple(split[number] for split in along)].append(number)
    return [
        list(group)
        for parts in found.values()
        for group in zip(*(parts[key] for key in sorted(parts)), strict=True)  # type: ignore[type-var]
    ]


def texts(sharding: str) -> list[str] | None:
    """The shardings of a tuple's arrays, without their braces; None for one that is no tuple's."""
    if not sharding.lstrip().startswith("{"):
        return None
    found, depth, begin = [], 0, 0
    for at, mark in enumerate(sharding):
        if mark == "{":
            begin = at + 1 if depth == 0 else begin
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                found.append(sharding[begin:at])
    return found


def tiling(sharding: str, rank: int, partitions: int) -> Tiling | None:
    """The tiling that HLO's sharding of one array says; None for manual.

    What one device has (``maximal``) every partition has. Raises `AttributeValueError` for a
    sharding that does not go with the array or the partitions, and `UnsupportedError` for one that
    is manual along some axes only.
    """
    text = re.sub(r"/\*.*?\*/|,?\s*metadata=\{.*\}", "", sharding).strip()
    if text == "manual":
        return None
    if text in ("", "replicated") or text.startswith("maximal"):
        return whole(rank, partitions)
    match = _TILED.fullmatch(text)
    if match is None:
        raise AttributeValueError(f"sharding: {{{sharding}}} is not known")
    sizes = _numbers(match["sizes"])
    if match["iota"]:
        numbers = np.arange(math.prod(_numbers(match["iota"]))).reshape(_numbers(match["iota"]))
        order = _numbers(match["order"]) if match["order"] else [*range(numbers.ndim)]
        if sorted(order) != list(range(numbers.ndim)):
            raise AttributeValueError(f"sharding: {{{sharding}}} transposes other dimensions")
        numbers = numbers.transpose(order).reshape(-1)
    else:
        numbers = np.array(_numbers(match["numbers"]))
    kinds = ["replicated"] if match["replicate"] else []
    kinds = [kind.strip() for kind in match["last"].split(",")] if match["last"] else kinds
    fits = len(sizes) == rank + len(kinds) and math.prod(sizes) == numbers.size
    if not fits or not np.array_equal(np.sort(numbers), np.arange(partitions)):
        raise AttributeValueError(
            f"sharding: {{{sharding}}} does not go with an array of rank {rank} and "
            f"{partitions} partitions"
        )
    grid = numbers.reshape(sizes)
    if "manual" in kinds:
        others = [n for n, kind in zip(sizes[rank:], kinds, strict=True) if kind != "manual"]
        if math.prod(sizes[:rank]) * math.prod(others) == 1:
            return None
        raise UnsupportedError(f"sharding: {{{sharding}}} is manual along some axes only")
    places = np.argwhere(grid >= 0)[np.argsort(grid.reshape(-1), kind="stable")]
    return tuple(tuple(places[:, dimension].tolist()) for dimension in range(rank))


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def length(size: int, split: Split) -> int:
    """The size of a part; the last ones of a dimension that does not divide end with padding."""
    return -(-size // count(split))


def part(tiling: Tiling, sizes: Iterable[int], number: int) -> tuple[slice, ...]:
    """Where a partition's part lies, without its padding."""
    found = []
    for split, size in zip(tiling, sizes, strict=True):
        each = length(size, split)
        begin = min(split[number] * each, size)
        found.append(slice(begin, min(begin + each, size)))
    return tuple(found)
