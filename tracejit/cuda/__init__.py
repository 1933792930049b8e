"""CUDA devices through the driver's own interface: devices, arrays in their memory, launches.

    tj.devices()                        # [<CUDA device 0: NVIDIA H200, sm_90>]
    x = tj.device_put(array, "cuda")    # a DeviceArray
    numpy.asarray(x)                    # copied back

Needs the driver's library alone, no toolkit and no TVM.
"""

from __future__ import annotations

from tracejit.cuda.arrays import DeviceArray, device_of_arguments
from tracejit.cuda.device import Device, device_of, devices
from tracejit.cuda.kernels import CudaKernel
from tracejit.cuda.streams import Stream, using_stream
from tracejit.cuda.transfer import from_device, to_device

__all__ = [
    "CudaKernel",
    "Device",
    "DeviceArray",
    "Stream",
    "device_of",
    "device_of_arguments",
    "devices",
    "from_device",
    "to_device",
    "using_stream",
]
