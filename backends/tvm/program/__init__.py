"""A program as data: kernels, calls, loops and branches over buffers.

`lower` makes it, `cpu.objects` compiles it, `lower.report` tells users of it.
"""
