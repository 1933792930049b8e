"""PyTorch, eager, on the CPU."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from tests.benchmarks.engines.base import Engine


class TorchEngine(Engine):
    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.module = torch
        self.version = f"PyTorch {torch.__version__}"

    def convert(self, array: np.ndarray) -> Any:
        return torch.from_numpy(array.copy())

    def convert_back(self, array: Any) -> np.ndarray:
        return np.asarray(array.detach() if isinstance(array, torch.Tensor) else array)


ENGINE = TorchEngine
