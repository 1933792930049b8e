"""`shard_map`, meshes and sharded arrays on threads: what is refused, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import P, lax
from tracejit.errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError

X = np.arange(48.0).reshape(8, 6)


def mesh() -> tj.Mesh:
    return tj.make_mesh((2, 2), ("a", "b"), tj.devices("cpu", 4))


def refused(f: Callable[..., Any], in_specs: Any, out_specs: Any, *args: Any) -> str:
    """What is wrong with a mapped function, called and in a jitted one."""
    mapped = tj.shard_map(f, mesh=mesh(), in_specs=in_specs, out_specs=out_specs)
    messages = []
    for function in (mapped, tj.jit(mapped)):
        with pytest.raises((ArgumentError, ShapeError)) as caught:
            function(*args)
        messages.append(caught.value.message)
    assert messages[0].split(";")[0] == messages[1].split(";")[0]
    return messages[0]


def test_results_that_differ_are_found() -> None:
    message = refused(lambda x: x + lax.axis_index("b"), P("a"), P("a"), X)
    assert "may differ along 'b', which out_specs P('a') does not mention" in message
    assert "along 'a', 'b'" in refused(lambda x: lax.ppermute(x, "a", [(0, 1)]), P("a"), P(), X)
    looped = tj.shard_map(
        lambda x: lax.fori_loop(0, 2, lambda i, s: lax.psum(s, "a"), x),
        mesh=mesh(),
        in_specs=P("a"),
        out_specs=P("a"),
    )
    np.testing.assert_array_equal(looped(X)[:4], 2 * (X[:4] + X[4:]))


def test_specs_and_names_that_do_not_fit() -> None:
    assert "'c' is no axis of Mesh({'a': 2, 'b': 2})" in refused(np.sin, P("c"), P("c"), X)
    assert "in_specs of sin has 2 entries for 1 arguments" in refused(np.sin, (P(), P()), P(), X)
    assert "known here are 'a', 'b'" in refused(lambda x: lax.psum(x, "c"), P(), P(), X)
    mapped = tj.shard_map(np.sin, mesh=mesh(), in_specs=P(None, ("a", "b")), out_specs=P())
    with pytest.raises(ShapeError, match=r"dimension 1 of \[8, 6\] must be divisible by 4"):
        mapped(X)
    with pytest.raises(ArgumentError, match=r"psum: 'a' is no axis .* none is known here"):
        lax.psum(X, "a")
    with pytest.raises(ArgumentError, match="takes 4 devices, and there are 2"):
        tj.make_mesh((4,), ("a",), tj.devices("cpu", 2))


def test_transformations_outside_of_jit() -> None:
    """All devices work out what is derived, as they do inside of jit."""
    total = tj.shard_map(
        lambda x: lax.psum((x**3).sum(), ("a", "b")),
        mesh=mesh(),
        in_specs=P("a", "b"),
        out_specs=P(),
    )
    np.testing.assert_allclose(tj.grad(total)(X), 3 * X**2)
    np.testing.assert_allclose(tj.grad(total)(-X), 3 * X**2)
    value, pullback = tj.vjp(total, X)
    np.testing.assert_allclose(value, (X**3).sum())
    np.testing.assert_allclose(pullback(2.0)[0], 6 * X**2)
    np.testing.assert_allclose(tj.jvp(total, (X,), (X,))[1], (3 * X**3).sum())
    np.testing.assert_allclose(np.diag(tj.hessian(total)(X).reshape(48, 48)), 6 * X.ravel())
    np.testing.assert_allclose(tj.vmap(total)(np.stack([X, 2 * X])), total(X) * np.array([1, 8]))
    with pytest.raises(UnsupportedError, match="check=True does not go with programs for several"):
        tj.jit(total, check=True)(X)


def test_effects_of_devices_are_transformed_inside_of_jit_alone() -> None:
    def noted(x: Any) -> Any:
        tj.debug.print("{}", x)
        return lax.psum(x.sum(), ("a", "b"))

    mapped = tj.shard_map(noted, mesh=mesh(), in_specs=P("a", "b"), out_specs=P())
    with pytest.raises(UnsupportedError, match="runs on 4 devices and has side effects; write jit"):
        tj.grad(mapped)(X)


def test_python_cannot_read_what_each_device_works_out() -> None:
    """It was read as that of device 0, on every device."""

    def numbered(x: Any) -> Any:
        return x + int(lax.axis_index("a"))

    mapped = tj.shard_map(numbered, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    for function in (mapped, tj.jit(mapped), tj.grad(lambda x: mapped(x).sum())):
        with pytest.raises(ConcretizationError, match="partition_id, which each device works out"):
            function(X)
    total = tj.shard_map(
        lambda x: lax.psum(x.sum(), ("a", "b")), mesh=mesh(), in_specs=P("a", "b"), out_specs=P()
    )
    with pytest.raises(ConcretizationError, match="all_reduce, which each device works out"):
        tj.grad(lambda x: x.sum() * float(total(x)))(X)


def test_arrays_show_where_they_lie(capsys: pytest.CaptureFixture[str]) -> None:
    sharding = tj.NamedSharding(mesh(), P("b", "a"))
    array = tj.make_array_from_process_local_data(sharding, X)
    assert [shard.data.shape for shard in array.addressable_shards] == [(4, 3)] * 4
    np.testing.assert_array_equal(array.addressable_shards[1].data, X[4:, :3])
    np.testing.assert_array_equal(array, X)
    assert array[7, 5] == X[7, 5]
    assert "cpu:1 [4:8, 0:3]" in repr(array)
    assert tj.visualize_sharding(array).splitlines()[1::2] == ["| 0 | 2 |", "| 1 | 3 |"]
    assert "| 1 | 3 |" in capsys.readouterr().out
    doubled = tj.shard_map(lambda x: 2 * x, mesh=mesh(), in_specs=P("b", "a"), out_specs=P("b"))
    with pytest.raises(ArgumentError, match="may differ along 'a'"):
        doubled(array)


def test_one_element_for_each_device() -> None:
    made = tj.pmap(lambda x, y: x / lax.psum(x, "i") + y, axis_name="i", in_axes=(0, None))
    np.testing.assert_allclose(made(np.arange(4.0), 1.0), np.arange(4) / 6 + 1)


def test_named_axes_of_vmap_within_a_mesh() -> None:
    def f(x: Any) -> Any:
        return tj.vmap(lambda row: row - lax.pmean(row, ("rows", "a")), axis_name="rows")(x)

    mapped = tj.shard_map(f, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    np.testing.assert_allclose(mapped(X), X - X.mean(0), atol=1e-12)


def test_axes_that_are_refused_by_name() -> None:
    def pair(x: Any) -> Any:
        return tj.vmap(lambda y: lax.all_gather(y, ("i", "a")), axis_name="i")(x)

    groups: dict[str, Any] = {"axis_index_groups": [[0, 2]]}
    nested: Callable[..., Any] = tj.vmap(tj.vmap(lambda x: x * 2, axis_name="i"), axis_name="i")
    with pytest.raises(ArgumentError, match="'i' is the name of an axis already"):
        nested(X)
    with pytest.raises(ArgumentError, match="'b' is no axis of a shard_map's mesh or of vmap"):
        tj.vmap(lambda x: lax.psum(x, "b"), axis_name="i")(X)
    mapped = tj.shard_map(
        lambda x: lax.psum(x, "a", **groups),
        mesh=mesh(),
        in_specs=P("a"),
        out_specs=P(),
    )
    with pytest.raises(ArgumentError, match=r"psum: axis_index_groups .* must hold each of the"):
        mapped(X)
    both = tj.shard_map(pair, mesh=mesh(), in_specs=P("a"), out_specs=P("a"))
    with pytest.raises(UnsupportedError, match="axes of one mesh, or one of vmap, not"):
        both(X)


def test_meshes_of_two_sizes_in_one_program() -> None:
    def over(count: int) -> Callable[..., Any]:
        small = tj.make_mesh((count,), ("a",), tj.devices("cpu", count))
        return tj.shard_map(np.sin, mesh=small, in_specs=P("a"), out_specs=P("a"))

    with pytest.raises(ArgumentError, match="devices do not go together in one program"):
        tj.jit(lambda x: over(2)(x) + over(4)(x))(X)


def test_groups_of_places() -> None:
    """As JAX: each device exchanges with those of its group."""
    mesh = tj.make_mesh((4,), ("i",), devices=tj.devices("cpu", 4))
    groups = [[0, 3], [2, 1]]
    x = np.arange(16.0).reshape(4, 4)

    def each(part: np.ndarray) -> Any:
        return (
            lax.psum(part, "i", axis_index_groups=groups),
            lax.pmean(part, "i", axis_index_groups=groups),
            lax.pmax(part, "i", axis_index_groups=groups),
            lax.all_gather(part, "i", axis_index_groups=groups, tiled=True),
            lax.psum_scatter(part, "i", axis_index_groups=groups, scatter_dimension=1, tiled=True),
            lax.all_to_all(part, "i", 1, 0, axis_index_groups=groups, tiled=True),
        )

    mapped = tj.shard_map(each, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    total, mean, most, gathered, scattered, exchanged = mapped(x)
    other = np.array([3, 2, 1, 0])
    np.testing.assert_array_equal(total, x + x[other])
    np.testing.assert_array_equal(mean, (x + x[other]) / 2)
    np.testing.assert_array_equal(most, np.maximum(x, x[other]))
    both = np.concatenate([x[[0, 3]], x[[2, 1]], x[[2, 1]], x[[0, 3]]])
    np.testing.assert_array_equal(gathered, both)
    halves = (x + x[other]).reshape(4, 2, 2)
    np.testing.assert_array_equal(
        scattered, [halves[0, 0], halves[1, 1], halves[2, 0], halves[3, 1]]
    )
    parts = x.reshape(4, 2, 2)
    pairs = [(0, 0), (3, 0), (2, 1), (1, 1), (2, 0), (1, 0), (0, 1), (3, 1)]
    np.testing.assert_array_equal(exchanged, [parts[pair] for pair in pairs])
    for wrong, message in (([[0, 1], [2]], "4 places once"), ([[0], [1, 2, 3]], "equally long")):
        groups = wrong
        with pytest.raises(ArgumentError, match=message):
            tj.shard_map(each, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x)
    with pytest.raises(UnsupportedError, match="psum: axis_index_groups along an axis of vmap"):
        tj.vmap(lambda v: lax.psum(v, "b", axis_index_groups=[[0, 1]]), axis_name="b")(x[:2])
