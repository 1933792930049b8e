"""The CUDA target on an emulated device: no test here needs a GPU."""
