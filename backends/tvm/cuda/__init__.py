"""The CUDA target: schedules for threads and blocks, and kernels as CUDA C for NVRTC."""
