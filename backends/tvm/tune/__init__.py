"""Schedule knobs: every choice between variants of a kernel, and the policy that decides it."""
