"""Schedule knobs: every choice between variants of a kernel, and the policy that decides it.

When: a kernel is written: its schedule asks for each knob.
"""
