"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.case import Case, Target, normal, same


def add(lib: Any, x: Any, y: Any) -> Any:
    return x + y


def add_one(lib: Any, tree: dict[str, Any]) -> dict[str, Any]:
    return {name: leaf + 1 for name, leaf in tree.items()}


def dictionary(rng: np.random.Generator, leaves: int, size: int) -> tuple[dict[str, np.ndarray]]:
    return ({f"leaf{i}": rng.standard_normal(size, dtype=np.float32) for i in range(leaves)},)


def add_numpy_torch(torch: Any, x: np.ndarray, y: np.ndarray) -> Any:
    return (torch.from_numpy(x) + torch.from_numpy(y)).numpy()


THIRD = Target(0.33, "jax")


CASES = [
    Case(
        "add 10 elements",
        (10,),
        tiny=(3,),
        inputs=normal(same, same),
        tracejit=add,
        numpy=add,
        jax=add,
        torch=add,
        start=True,
        target=THIRD,
    ),
    Case(
        "add 10 elements, given NumPy arrays",
        (10,),
        tiny=(3,),
        inputs=normal(same, same),
        tracejit=add,
        numpy=add,
        jax=add,
        torch=add_numpy_torch,
        arguments="numpy",
        target=THIRD,
    ),
    Case(
        "dict of 50 leaves",
        (50, 10),
        tiny=(5, 2),
        inputs=dictionary,
        tracejit=add_one,
        numpy=add_one,
        jax=add_one,
        torch=add_one,
        target=THIRD,
    ),
]
