"""The one place that joins all parts: what runs a graph is chosen here."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction
from tracejit.graph import Module
from tracejit.trace.evaluation import use_evaluator
from tracejit.transforms.compiler import Executable, use_compiler
from tracejit.transforms.interpreted import Checked, Interpreted


def interpret(module: Module, *arrays: Any) -> Any:
    """The result of a module on ``arrays``, worked out op by op with NumPy."""
    return evaluate(module.entry, [np.asarray(array) for array in arrays])


def _executable(module: Module, target: str, check: bool) -> Executable:
    return Checked(module) if check else Interpreted(module)


use_evaluator(evaluate_instruction)
use_compiler(_executable)
