"""The CUDA target: schedules for threads and blocks, and kernels as CUDA C for NVRTC.

When: `lower` asks its schedules, then `build` compiles the program for a GPU.
"""
