"""Emits single elements of instructions as TIR: access analysis, emitter, loop nests.

In: a kernel of the fusion plan. Out: expressions and loops, for a target's schedules.

When: in `lower`, once for each kernel of the plan.
"""
