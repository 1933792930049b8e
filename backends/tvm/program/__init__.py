"""Programs as data: kernels, calls, loops and branches over buffers.

`lower` builds a program, `cpu.objects` compiles it, `cpu.objects.report` explains it to users.

When: `lower` makes the `Program`; the build reads it.
"""
