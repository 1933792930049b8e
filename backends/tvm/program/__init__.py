"""Programs as data: kernels, calls, loops and branches over buffers.

`lower` builds a program, `cpu.objects` compiles it, `cpu.objects.report` explains it to users.

When: a `Program` is what is left after `lower`; the build reads it.
"""
