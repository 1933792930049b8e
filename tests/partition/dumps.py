"""What JAX lowers for four devices, as text, and what it makes of it.

python -m tests.partition.dumps FILE
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], tuple[np.ndarray, ...], tuple[Any, ...]]


def cases(jax: Any) -> dict[str, Case]:
    """Functions, arguments, and the sharding of each."""
    jnp, lax = jax.numpy, jax.lax
    spec = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    table = rng.standard_normal((10, 4)).astype(np.float32)
    words = rng.integers(0, 10, 8).astype(np.int32)
    image = rng.standard_normal((4, 6, 6, 2)).astype(np.float32)
    kernel = rng.standard_normal((3, 3, 2, 4)).astype(np.float32)

    def on(*axes: Any) -> Any:
        return jax.sharding.NamedSharding(mesh, spec(*axes))

    def constrained(x: Any, w: Any) -> Any:
        hidden = lax.with_sharding_constraint(jnp.tanh(x @ w), on("a", "b"))
        return hidden.sum(), hidden

    def scanned(x: Any, w: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum(1)), x, None, length=3)

    def halted(x: Any, w: Any) -> Any:
        return lax.while_loop(lambda c: (c**2).sum() > 1, lambda c: c @ w / 4, x)

    def chosen(x: Any, w: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: x - 1, x)

    def by_hand(x: Any, w: Any) -> Any:
        def part(x: Any, w: Any) -> Any:
            return lax.psum(x @ w, "b") * (1 + lax.axis_index("a"))

        return jax.shard_map(
            part, mesh=mesh, in_specs=(spec("a", "b"), spec("b")), out_specs=spec("a")
        )(x, w)

    def by_hand_along_one(x: Any, w: Any) -> Any:
        return jax.shard_map(
            lambda x, w: lax.psum(x @ w, "b"),
            mesh=mesh,
            in_specs=(spec(None, "b"), spec("b", None)),
            out_specs=spec(),
            axis_names={"b"},
        )(jnp.sin(x), w)

    def looked_up(table: Any, words: Any) -> Any:
        def loss(table: Any) -> Any:
            return (jnp.sin(table[words]) ** 2).mean()

        return jax.value_and_grad(loss)(table)

    def attended(x: Any, w: Any) -> Any:
        q, k = (x @ w).reshape(8, 2, 4), x.reshape(8, 2, 4)
        scores = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", q, k))
        return jnp.einsum("hij,jhd->ihd", scores, k).reshape(8, 8)

    def pooled(image: Any, kernel: Any) -> Any:
        def loss(kernel: Any) -> Any:
            numbers = ("NHWC", "HWIO", "NHWC")
            made = lax.conv_general_dilated(
                image, kernel, (1, 1), "SAME", dimension_numbers=numbers
            )
            return lax.reduce_window(made, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

        return loss(kernel)

    def ordered(x: Any, w: Any) -> Any:
        return jnp.sort(x, 1), jnp.cumsum(x, 1), lax.top_k(x, 2), x.at[1, 2:4].add(w[0, :2])

    plain, rows = (on("a"), on(None, "b")), (on("a"), on())
    return {
        "constrained": (constrained, (x, w), plain),
        "scanned": (scanned, (x, w), plain),
        "halted": (halted, (x, w / 3), rows),
        "chosen": (chosen, (x, w), rows),
        "by hand": (by_hand, (x, w), (on("a", "b"), on("b"))),
        "by hand along one": (by_hand_along_one, (x, w), (on("a", "b"), on("b"))),
        "looked up": (looked_up, (table, words), (on(), on(("a", "b")))),
        "looked up in rows": (looked_up, (table, words), (on("a", "b"), on("b"))),
        "attended": (attended, (x, w), (on("a"), on(None, "b"))),
        "pooled": (pooled, (image, kernel), (on("a"), on(None, None, None, "b"))),
        "ordered": (ordered, (x, w), (on(("a", "b")), on())),
    }


def main(path: Path) -> None:
    import jax

    found = {}
    for name, (function, arrays, shardings) in cases(jax).items():
        lowered = jax.jit(function, in_shardings=shardings).lower(*arrays)
        compiled = lowered.compile()
        leaves = jax.tree.leaves(compiled(*arrays))
        found[name] = (
            lowered.as_text("hlo"),
            lowered.as_text("stablehlo"),
            compiled.as_text(),
            list(arrays),
            [np.asarray(leaf) for leaf in leaves],
        )
    path.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    main(Path(sys.argv[1]))
