"""Programs on a mesh of four devices, written once for `jax` and for `tracejit`.

results(tracejit, tracejit.lax, numpy, ...)         what each program makes, by its name
python -m tests.sharding.cases FILE                 JAX's, pickled into a file
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
RNG = np.random.default_rng(7)
X = RNG.normal(size=(8, 12))
W = RNG.normal(size=(12, 4))
T = RNG.normal(size=(8, 4))

Function = Callable[..., Any]


def mapped(lax: Any, xp: Any) -> dict[str, tuple[Function, Any, Any]]:
    """Functions of one array, with the axes of the argument and of the result."""
    one, two = ("a",), ("a", "b")
    return {
        "psum": (lambda x: lax.psum(x, "a"), one, ()),
        "psum of both": (lambda x: lax.psum(x.sum(), ("a", "b")), two, ()),
        "psum of a number": (lambda x: x * lax.psum(1, ("a", "b")), two, two),
        "pmean": (lambda x: lax.pmean(xp.sin(x), "b"), two, one),
        "pmax": (lambda x: lax.pmax(x, "a"), one, ()),
        "pmin": (lambda x: lax.pmin(x, "b"), (None, "b"), ()),
        "all_gather": (lambda x: lax.all_gather(x, "b"), two, (None, "a")),
        "all_gather tiled": (lambda x: lax.all_gather(x, "b", axis=1, tiled=True), two, one),
        "psum_scatter": (lambda x: lax.psum_scatter(x.reshape(2, -1), "a"), one, one),
        "psum_scatter tiled": (
            lambda x: lax.psum_scatter(x, ("a", "b"), scatter_dimension=1, tiled=True),
            ("a",),
            (None, ("a", "b")),
        ),
        "all_to_all": (lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True), one, (None, "a")),
        "all_to_all of parts": (
            lambda x: lax.all_to_all(x.reshape(4, 2, 6), "b", 1, 1),
            ("a",),
            ("a", "b"),
        ),
        "ppermute": (lambda x: lax.ppermute(x, ("a", "b"), RING), (("a", "b"),), (("a", "b"),)),
        "ppermute of some": (lambda x: lax.ppermute(x, "b", [(1, 0)]), two, two),
        "axis_index": (
            lambda x: x + lax.axis_index("a") * 10.0 + lax.axis_index(("b", "a")),
            two,
            two,
        ),
        "nothing": (lambda x: xp.tanh(x) * 2, two, two),
    }


def results(module: Any, lax: Any, xp: Any, shard_map: Function, mesh: Any) -> dict[str, Any]:
    """The result of each program, its first and its second derivative."""
    P = tj.P if module is tj else module.sharding.PartitionSpec
    made: dict[str, Any] = {}
    for name, (function, given, returned) in mapped(lax, xp).items():
        program = shard_map(function, mesh=mesh, in_specs=P(*given), out_specs=P(*returned))
        made[name] = program(X)
        if name in ("pmax", "pmin"):  # without a derivative in JAX
            continue

        def loss(x: Any, program: Function = program) -> Any:
            return (xp.sin(program(x * x)) ** 2).sum()

        made[f"{name}, derivative"] = module.jit(module.grad(loss))(X)
        if name in ("psum", "all_gather", "psum_scatter tiled", "ppermute", "all_to_all"):

            def again(x: Any, loss: Function = loss) -> Any:
                return (module.grad(loss)(x) * xp.cos(x)).sum()

            made[f"{name}, second derivative"] = module.jit(module.grad(again))(X)

    data = partial(shard_map, mesh=mesh, in_specs=(P(), P(("a", "b")), P(("a", "b"))))

    def local_loss(w: Any, x: Any, t: Any) -> Any:
        return ((xp.tanh(x @ w) - t) ** 2).mean()

    def step(w: Any, x: Any, t: Any) -> Any:
        loss, gradient = module.value_and_grad(local_loss)(w, x, t)
        return lax.pmean(loss, ("a", "b")), lax.pmean(gradient, ("a", "b"))

    made["data-parallel step"] = data(step, out_specs=(P(), P()))(W, X, T)
    made["data-parallel step in jit"] = module.jit(data(step, out_specs=(P(), P())))(W, X, T)

    def mean_loss(w: Any, x: Any, t: Any) -> Any:
        return lax.pmean(local_loss(w, x, t), ("a", "b"))

    whole = data(mean_loss, out_specs=P())
    made["gradient outside of jit"] = module.grad(whole, (0, 1))(W, X, T)
    made["gradient through"] = module.jit(module.grad(whole, (0, 1)))(W, X, T)

    def product(x: Any, w: Any) -> Any:
        return lax.psum(x @ w, "a")

    tensor = shard_map(
        product, mesh=mesh, in_specs=(P("b", "a"), P("a", None)), out_specs=P("b", None)
    )
    made["tensor-parallel product"] = tensor(X, W)

    def tree_sums(x: Any) -> Any:
        return lax.psum({"x": x, "y": (x[:2] * 2, 3.0)}, "a")

    made["tree"] = shard_map(
        tree_sums, mesh=mesh, in_specs=P("a"), out_specs={"x": P(), "y": (P(), P())}
    )(X)
    return made


def of_tracejit() -> dict[str, Any]:
    """On threads, or on the ranks of MPI."""
    devices = tj.devices("cpu", 4)
    mesh = tj.make_mesh((2, 2), ("a", "b"), devices)

    def shard_map(function: Function, **named: Any) -> Function:
        return tj.shard_map(function, check_vma=False, **named)

    return results(tj, tj.lax, np, shard_map, mesh)


def of_jax() -> dict[str, Any]:
    """On four devices of XLA's in this process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    shard_map = partial(jax.shard_map, check_vma=False)
    return results(jax, jax.lax, jax.numpy, shard_map, mesh)


def main(path: Path) -> None:
    made = of_jax()
    arrays = {n: [np.asarray(a) for a in tj.tree.leaves(v)] for n, v in made.items()}
    path.write_bytes(pickle.dumps(arrays))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    main(Path(sys.argv[1]))
