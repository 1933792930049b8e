"""Draws a graph with matplotlib: arguments at the top, the result at the bottom.

draw(tj.jit(f).lower(x).module, "f")
"""

from __future__ import annotations

from matplotlib.figure import Figure

from tracejit.graph import Instruction, Module
from tracejit.traversal import instructions

Rows = list[list[Instruction]]


def in_rows(module: Module) -> Rows:
    """The entry's instructions, each below its operands, and what has none just above a user."""
    everything = instructions(module.entry)
    row: dict[Instruction, int] = {}
    for instruction in everything:
        row[instruction] = 1 + max((row[operand] for operand in instruction.operands), default=-1)
    for instruction in reversed(everything):
        if not instruction.operands:
            users = [row[user] for user in everything if instruction in user.operands]
            row[instruction] = min(users, default=1) - 1
    rows: Rows = [[] for _ in range(1 + max(row.values()))]
    for instruction in everything:
        rows[row[instruction]].append(instruction)
    return rows


def places(rows: Rows) -> dict[Instruction, tuple[float, float]]:
    """Columns one apart and rows one apart, each row centred, and ordered as its operands are."""
    place: dict[Instruction, tuple[float, float]] = {}

    def middle(instruction: Instruction) -> float:
        across = [place[operand][0] for operand in instruction.operands]
        return sum(across) / len(across) if across else float("inf")

    for level, members in enumerate(rows):
        for column, instruction in enumerate(sorted(members, key=middle)):
            place[instruction] = column - (len(members) - 1) / 2, float(-level)
    return place


def draw(module: Module, title: str) -> Figure:
    """A new figure with the module's entry computation: opcodes, shapes, and who uses what."""
    rows = in_rows(module)
    place = places(rows)
    width = max(len(members) for members in rows)
    figure = Figure(figsize=(1.4 * width + 2, 0.6 * len(rows) + 0.4), layout="constrained")
    axes = figure.subplots()
    for instruction, (across, down) in place.items():
        for operand in instruction.operands:
            # An arrow past other rows is bent, so that it does not run through what stands there.
            bent = 0.0 if place[operand][1] == down + 1 else 0.3
            arrow = {
                "arrowstyle": "-|>",
                "color": "grey",
                "connectionstyle": f"arc3,rad={bent}",
                "shrinkA": 10,
                "shrinkB": 10,
            }
            axes.annotate("", xy=(across, down), xytext=place[operand], arrowprops=arrow)
        inner = "white" if instruction.operands else "lightblue"
        colour = "lightgreen" if instruction is module.entry.root else inner
        box = {"boxstyle": "round", "facecolor": colour, "edgecolor": "grey"}
        text = f"{instruction.op.opcode}\n{instruction.shape}"
        axes.text(across, down, text, ha="center", va="center", fontsize=7, bbox=box)
    axes.set(xlim=(-width / 2 - 0.3, width / 2 + 0.3), ylim=(0.6 - len(rows), 0.6), title=title)
    axes.axis("off")
    return figure
