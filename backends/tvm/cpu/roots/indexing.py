"""Lowers Scatter: a copy of the operand, then updates combined into it."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.scatter.scatter import scattering
from tracejit.backends.tvm.cpu.schedule.scatter.updates import Scattering
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.indexing import SCATTER


@rooted.attach(SCATTER)
def scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    attributes = instruction.attributes
    count = len(instruction.operands) // 2
    rank = instruction.operands[0].array_shape.rank
    removed = {*attributes["inserted_window_dims"], *attributes["input_batching_dims"]}
    kept = [d for d in range(rank) if d not in removed]
    batching = zip(
        attributes["input_batching_dims"],
        attributes["scatter_indices_batching_dims"],
        strict=True,
    )
    work = Scattering(
        operands=instruction.operands[:count],
        indices=instruction.operands[count],
        updates=instruction.operands[count + 1 :],
        targets=[target for _, target in results],
        combine=attributes["to_apply"],
        window_dims=dict(zip(attributes["update_window_dims"], kept, strict=True)),
        index_map=attributes["scatter_dims_to_operand_dims"],
        index_vector_dim=attributes["index_vector_dim"],
        batching=list(batching),
    )
    return scattering(frame, work)
