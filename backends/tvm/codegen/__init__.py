"""Elements of instructions as TIR, whatever the schedule: index queries, emitter, loop nests.

In: a kernel of the plan. Out: expressions and loops, asked for by a target's schedules.
"""
