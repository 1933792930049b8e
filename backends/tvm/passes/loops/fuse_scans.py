"""Fuses Scans with equal iterations.

    scan(f, x) -> a; scan(f + outputs, x) -> a, b        scan(f + outputs, x) -> a, b

A derivative needs the carries of every iteration, and computes them by a Scan like the first one
with more outputs. If one Scan computes all results of another, the other is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, elements_of, get_tuple_element
from tracejit.ops.scanning import SCAN
from tracejit.traversal import in_order, rebuild, transform, users_of


def fuse_scans(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which no Scan repeats another's iterations."""
    order = in_order(roots)
    if sum(i.op is SCAN for i in order) < 2:
        return list(roots)
    hosts = _hosts(order)
    made: dict[Instruction, Instruction] = {}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        host = hosts.get(instruction)
        if host is not None:
            # The other Scan's operands are the same, so it can be built here.
            if host not in made:
                made[host] = rebuild(host, operands)
            return made[host]
        if instruction.op is not GET_TUPLE_ELEMENT:
            return None
        (scan,) = instruction.operands
        if hosts.get(scan, scan) is scan:
            return None
        return get_tuple_element(operands[0], _place(scan, hosts[scan], instruction))

    return transform(roots, visit)


def _hosts(order: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    """Maps each Scan to the Scan that covers it, and that one to itself."""
    users = users_of(order)
    groups: dict[Any, list[Instruction]] = {}
    for instruction in order:
        if instruction.op is SCAN and not instruction.has_effect:
            groups.setdefault(_steps(instruction), []).append(instruction)
    hosts: dict[Instruction, Instruction] = {}
    for scans in groups.values():
        host = max(scans, key=lambda scan: len(scan.element_shapes))
        covered = [
            scan
            for scan in scans
            if scan is not host
            and set(_results(scan)) <= set(_results(host))
            and all(user.op is GET_TUPLE_ELEMENT for user in users[scan])
        ]
        hosts.update(dict.fromkeys(covered, host))
        if covered:
            hosts[host] = host
    return hosts


def _steps(scan: Instruction) -> Any:
    """A key: Scans with equal keys compute equal values in each iteration."""
    attributes = scan.attributes
    carried = attributes["num_carries"]
    return (
        scan.operands,
        attributes["to_apply"].parameters,
        _results(scan)[len(scan.element_shapes) - carried :],
        attributes["dimensions"],
        attributes["is_reverse"],
    )


def _results(scan: Instruction) -> tuple[Instruction, ...]:
    """The outputs and carries of an iteration, as instructions of its computation."""
    return elements_of(scan.attributes["to_apply"].root)


def _place(scan: Instruction, host: Instruction, element: Instruction) -> int:
    """The number of the host's element that equals ``element`` of a Scan."""
    carried = scan.attributes["num_carries"]
    own, wide = len(scan.element_shapes), len(host.element_shapes)
    index: int = element.attributes["index"]
    if index >= own - carried:
        return wide - own + index
    return _results(host)[: wide - carried].index(_results(scan)[index])
