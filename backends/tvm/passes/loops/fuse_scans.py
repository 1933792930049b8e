"""Fuses Scans that take the same steps.

A derivative needs the carries of every step, and asks for them with a Scan like the first one that
has more outputs. Where one Scan makes all that another makes, it makes it for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, elements_of, get_tuple_element
from tracejit.ops.scanning import SCAN
from tracejit.traversal import in_order, rebuild, transform, users_of


def fuse_scans(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which no Scan repeats another's steps."""
    order = in_order(roots)
    if sum(i.op is SCAN for i in order) < 2:
        return list(roots)
    hosts = _hosts(order)
    made: dict[Instruction, Instruction] = {}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        host = hosts.get(instruction)
        if host is not None:
            # Its operands are this one's, so it can be made here.
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
    """For each Scan that another one like it covers, that other one; and itself for that one."""
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
    """What decides the values that a Scan's computation makes, step by step."""
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
    """The step's outputs and carries, as instructions of its computation."""
    return elements_of(scan.attributes["to_apply"].root)


def _place(scan: Instruction, host: Instruction, element: Instruction) -> int:
    """The number of the host's element that is the same as ``element`` of a Scan."""
    carried = scan.attributes["num_carries"]
    own, wide = len(scan.element_shapes), len(host.element_shapes)
    index: int = element.attributes["index"]
    if index >= own - carried:
        return wide - own + index
    return _results(host)[: wide - carried].index(_results(scan)[index])
