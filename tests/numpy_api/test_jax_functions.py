"""Functions that have JAX's names, arguments and layouts, judged by JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.nn
import jax.numpy as jnp
import numpy as np
import pytest

import tracejit as tj
from tracejit import nn, tree_util
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    ConcretizationError,
    ElementTypeError,
    ShapeError,
)

RNG = np.random.default_rng(11)
X = RNG.normal(size=(5, 4))
IDS = np.array([0, 2, 2, 7, -1])


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def same(got: Any, wanted: Any, rtol: float = 1e-12) -> None:
    found, theirs = tj.tree.leaves(got), jax.tree.leaves(wanted)
    assert len(found) == len(theirs)
    for mine, other in zip(found, theirs, strict=True):
        assert np.asarray(mine).dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=1e-14)


LAX: dict[str, Callable[[Any], Any]] = {
    "split": lambda lax: lambda x: lax.split(x, (1, 0, 3), 1),
    "tile": lambda lax: lambda x: lax.tile(x, (2, 3)),
    "round": lambda lax: lambda x: lax.round(x * 4 + 0.5),
    "round even": lambda lax: lambda x: lax.round(x * 4, lax.RoundingMethod.TO_NEAREST_EVEN),
    "index_in_dim": lambda lax: lambda x: lax.index_in_dim(x, -2, 1),
    "index_in_dim, dropped": lambda lax: lambda x: lax.index_in_dim(x, 1, keepdims=False),
    "cumlogsumexp": lambda lax: lambda x: lax.cumlogsumexp(x * 100, 1),
    "cumlogsumexp, reverse": lambda lax: lambda x: lax.cumlogsumexp(x, 0, reverse=True),
    "full_like": lambda lax: lambda x: lax.full_like(x, 2),
    "stack": lambda lax: lambda x: lax.stack([x, x + 1], 1),
    "unstack": lambda lax: lambda x: lax.unstack(x, axis=1),
    "exp2": lambda lax: lambda x: lax.exp2(x),
    "sort_key_val": lambda lax: lambda x: lax.sort_key_val(x, x * x, 0),
    "broadcast_to_rank": lambda lax: lambda x: lax.broadcast_to_rank(x, 4),
    "stop_gradient": lambda lax: lambda x: lax.stop_gradient(x) * x,
    "erf_inv": lambda lax: lambda x: lax.erf_inv(lax.tanh(x)),
    "lgamma": lambda lax: lambda x: lax.lgamma(lax.exp(x)),
    "igamma": lambda lax: lambda x: lax.igamma(lax.exp(x), lax.exp(-x)),
    "select": lambda lax: lambda x: lax.select(lax.full_like(x, 2, np.int64) > 1, x, -x),
}


@pytest.mark.parametrize("name", LAX)
def test_lax(name: str) -> None:
    wanted = LAX[name](jax.lax)(jnp.asarray(X))
    same(tj.jit(LAX[name](tj.lax))(X), wanted)
    same(LAX[name](tj.lax)(X), wanted)

    def total(module: Any) -> Any:
        return lambda x: sum(a.sum() for a in jax.tree.leaves(LAX[name](module)(x)))

    same(tj.grad(total(tj.lax))(X), jax.grad(total(jax.lax))(X), rtol=1e-7)


def test_cumlogsumexp_of_nothing() -> None:
    x = np.array([-np.inf, -np.inf, 1.0])
    assert tj.lax.cumlogsumexp(x).tolist() == [-np.inf, -np.inf, 1.0]
    assert np.isfinite(tj.grad(lambda x: tj.lax.cumlogsumexp(x)[2])(x)).all()


def test_integers_select() -> None:
    flags = np.array([0, 1, 3, -1], np.int32)
    got = tj.jit(lambda f: tj.lax.select(f, np.ones(4), np.zeros(4)))(flags)
    assert got.tolist() == [0, 1, 1, 0]
    with pytest.raises(ElementTypeError, match="select"):
        tj.lax.select(X, X, X)


def test_lax_errors() -> None:
    with pytest.raises(ShapeError, match="stack: needs at least one array"):
        tj.lax.stack([])
    with pytest.raises(
        ShapeError, match=r"split: sizes \(1, 2\) must add up to 5, the size of axis 0 of"
    ):
        tj.lax.split(X, (1, 2))
    with pytest.raises(ShapeError, match=r"tile: reps \(2,\) must have a number for each"):
        tj.lax.tile(X, (2,))
    with pytest.raises(AttributeValueError, match="index 4 is out of bounds for axis 1"):
        tj.lax.index_in_dim(X, 4, 1)
    with pytest.raises(ShapeError, match="cannot be broadcast together"):
        tj.lax.broadcast_shapes((2,), (3,))
    with pytest.raises(ShapeError, match=r"broadcast_to_rank: f64\[5,4\] has a rank above 1"):
        tj.lax.broadcast_to_rank(X, 1)


@pytest.mark.parametrize("name", ["approx_max_k", "approx_min_k"])
def test_top(name: str) -> None:
    same(
        tj.jit(lambda x: getattr(tj.lax, name)(x, 2, reduction_dimension=0)[0])(X),
        getattr(jax.lax, name)(jnp.asarray(X), 2, reduction_dimension=0)[0],
    )


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_segments(name: str, dtype: Any) -> None:
    data = (X * 5).astype(dtype)
    mine, theirs = getattr(tj.ops, name), getattr(jax.ops, name)
    wanted = theirs(jnp.asarray(data), jnp.asarray(IDS), num_segments=4)
    same(tj.jit(lambda x, ids: mine(x, ids, num_segments=4))(data, IDS), wanted, 1e-6)
    same(mine(data, np.abs(IDS)), theirs(jnp.asarray(data), jnp.asarray(np.abs(IDS))), 1e-6)
    if dtype is np.float64 and name != "segment_prod":
        gradient = tj.grad(lambda x: (mine(x, IDS, 3)[np.array([0, 2])] * 2).sum())(data)
        expected = jax.grad(lambda x: (theirs(x, IDS, 3)[np.array([0, 2])] * 2).sum())(data)
        same(gradient, expected, 1e-9)


def test_segment_errors() -> None:
    with pytest.raises(ShapeError, match="a number for each row of data"):
        tj.ops.segment_sum(X, IDS[:3], 3)
    with pytest.raises(ElementTypeError, match="segment_ids must be integers"):
        tj.ops.segment_sum(X, X[:, 0], 3)
    with pytest.raises(ConcretizationError, match="write num_segments="):
        tj.jit(tj.ops.segment_sum)(X, IDS)


ATTENTION: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "window": {"local_window_size": (1, 2)},
    "bias": {"bias": RNG.normal(size=(1, 4, 1, 6))},
    "mask": {"mask": RNG.random((2, 1, 5, 6)) > 0.4},
    "no key": {"mask": np.zeros((2, 4, 5, 6), bool)},
    "lengths": {
        "query_seq_lengths": np.array([3, 5], np.int32),
        "key_value_seq_lengths": np.array([6, 2], np.int32),
    },
}


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("groups", [4, 2, 1])
def test_attention(name: str, groups: int) -> None:
    q = RNG.normal(size=(2, 5, 4, 3))
    k, v = RNG.normal(size=(2, 2, 6, groups, 3))
    options = ATTENTION[name]
    mine = tj.jit(lambda *a: nn.dot_product_attention(*a, **options))
    # JAX's softmax is of single precision.
    same(mine(q, k, v), jax.nn.dot_product_attention(q, k, v, **options), 1e-4)
    gradients = tj.grad(lambda *a: (mine(*a) ** 2).sum(), (0, 1, 2))(q, k, v)
    tj.check_grads(lambda *a: (mine(*a) ** 2).sum(), (q, k, v), order=1)
    assert [g.shape for g in gradients] == [q.shape, k.shape, v.shape]


def test_attention_without_batch_and_in_single_precision() -> None:
    q, k, v = RNG.normal(size=(3, 5, 2, 4)).astype(np.float32)
    same(nn.dot_product_attention(q, k, v), jax.nn.dot_product_attention(q, k, v), 1e-5)
    with pytest.raises(ShapeError, match="n a multiple of k"):
        nn.dot_product_attention(q, np.repeat(k, 3, 1)[:, :5], np.repeat(v, 3, 1)[:, :5])
    with pytest.raises(ShapeError, match="mask must broadcast to"):
        nn.dot_product_attention(q, k, v, None, np.ones((3, 4), bool))
    with pytest.raises(AttributeValueError, match="implementation must be"):
        nn.dot_product_attention(q, k, v, implementation="cudnn")


INITIALIZERS: dict[str, Any] = {
    "glorot_normal": (), "glorot_uniform": (), "he_normal": (), "he_uniform": (),
    "lecun_normal": (), "lecun_uniform": (), "normal": (0.3,), "uniform": (0.3,),
    "truncated_normal": (0.3,), "orthogonal": (), "delta_orthogonal": (), "constant": (3,),
    "variance_scaling": (0.5, "fan_geo_avg", "normal", -1, -2),
}  # fmt: skip


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name: str) -> None:
    mine = getattr(nn.initializers, name)(*INITIALIZERS[name])
    theirs = getattr(jax.nn.initializers, name)(*INITIALIZERS[name])
    for dtype in (np.float64, np.float32):
        got = mine(tj.random.key(3), (3, 4, 6), dtype)
        same(got, theirs(jax.random.key(3), (3, 4, 6), dtype), 1e-4)
    assert mine(tj.random.key(3), (3, 4, 6)).dtype == np.float64


def test_initializer_errors() -> None:
    with pytest.raises(AttributeValueError, match="mode must be one of"):
        nn.initializers.variance_scaling(1, "fan", "normal")
    with pytest.raises(ShapeError, match="two dimensions at least"):
        nn.initializers.he_normal()(tj.random.key(0), (3,))
    assert nn.initializers.zeros(None, (2, 0)).shape == (2, 0)


def test_small_ones() -> None:
    assert nn.one_hot(np.array([1, 5]), 3).dtype == np.float64
    same(nn.logmeanexp(X, 1), jax.nn.logmeanexp(jnp.asarray(X), 1))
    where = X > 0
    same(nn.logmeanexp(X, where=where), jax.nn.logmeanexp(jnp.asarray(X), where=where))


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> Pair:
        return cls(*children)


@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, a: Any) -> None:
        self.a = a

    def tree_flatten_with_keys(self) -> Any:
        return ((tree_util.GetAttrKey("a"), self.a),), None

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> Keyed:
        return cls(*children)


@dataclass
class Point:
    x: Any
    name: str = "p"


tree_util.register_dataclass(Point, data_fields=["x"], meta_fields=["name"])


def test_nodes() -> None:
    doubled = tj.jit(lambda p: Pair(p.a * 2, {"k": p.b}))(Pair(X, Keyed(3)))
    assert type(doubled) is Pair
    np.testing.assert_array_equal(doubled.a, X * 2)
    paths = tree_util.tree_leaves_with_path({"q": Pair(1, [Keyed(2)]), "p": Point(4)})
    assert [tree_util.keystr(path) for path, _ in paths] == [
        "['p'].x",
        "['q'][<flat index 0>]",
        "['q'][<flat index 1>][0].a",
    ]
    assert tj.tree.paths(tj.tree.structure({"p": Point(4)}), "t") == ["t['p'].x"]
    with pytest.raises(ArgumentError, match="Pair is registered as a node already"):
        tree_util.register_pytree_node_class(Pair)


TREE = {"b": [1, (2, None)], "a": {"z": 3, "y": 4}}


@pytest.mark.parametrize("util", [tree_util, jax.tree_util])
def test_trees_as_jax(util: Any) -> None:
    """The same assertions for both."""
    spec = util.tree_structure([0, 0])
    assert util.tree_transpose(spec, None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {
        "a": [1, 3],
        "b": [2, 4],
    }
    assert util.tree_broadcast((1, 2), ([5, 6], 7)) == ([1, 1], 2)
    assert util.tree_reduce(lambda a, b: a * 10 + b, TREE) == 4312
    assert util.tree_reduce(lambda a, b: a + b, TREE, 5) == 15
    assert util.tree_all([True, (1, False)]) is False
    assert util.all_leaves([1, 2]) is True
    assert util.all_leaves([1, [2]]) is False
    assert util.tree_map(lambda a, b: (a, b), (1, 2), ([3], {"a": 5})) == ((1, [3]), (2, {"a": 5}))
    named = util.tree_map_with_path(lambda path, x: f"{util.keystr(path)}={x}", TREE)
    assert named == {"b": ["['b'][0]=1", ("['b'][1][0]=2", None)], "a": {"z": "['a']['z']=3",
                     "y": "['a']['y']=4"}}  # fmt: skip
    path = util.tree_flatten_with_path(TREE)[0][0][0]
    assert util.keystr(path, simple=True, separator="/") == "a/y"
    half = util.Partial(pow, 2)
    assert util.tree_map(lambda a: a + 1, half)(3) == 27
    assert util.treedef_is_leaf(util.tree_structure(1))
    assert util.treedef_children(util.treedef_tuple([spec]))[0] == spec
    assert util.tree_reduce_associative(lambda a, b: a + b, [1, 2, 3], identity=0) == 6


def test_shapes_alone() -> None:
    struct = tj.ShapeDtypeStruct((2, 3), np.float32)
    made = tj.eval_shape(lambda x, y: {"a": x @ y, "b": x.sum()}, struct, np.ones(3))
    assert made == {
        "a": tj.ShapeDtypeStruct((2,), np.float64),
        "b": tj.ShapeDtypeStruct((), np.float32),
    }
    assert (struct.ndim, struct.size, len({struct, tj.ShapeDtypeStruct((2, 3), "f4")})) == (2, 6, 1)
    graph = tj.make_graph(lambda x, n: x * n, static_argnums=1)(struct, 3)
    assert "f32[2,3]" in str(graph)
    assert tj.jit(lambda x: x * 2).lower(struct).out_info == struct


def test_plain_python() -> None:
    seen: list[type] = []

    def double(x: Any) -> Any:
        seen.append(type(x))
        return x * 2

    f = tj.jit(double)
    with tj.disable_jit():
        assert f(3.0) == 6.0
    assert seen == [float]
    assert f(3.0) == f(3.0) == 6.0
    with tj.disable_jit(False):
        f(4.0)
    assert len(seen) == 2


def test_names_that_do_little() -> None:
    tree = {"a": X}
    assert tj.block_until_ready(tree) is tree
    assert type(tj.device_put([1.5, 2])[0]) is np.ndarray
    assert tj.device_get(tree)["a"] is X
    with pytest.raises(ValueError, match="device must be 'cuda' or 'cuda:NUMBER', not 'gpu'"):
        tj.device_put(X, "gpu")
    with tj.named_scope("layer"):
        assert isinstance(X, tj.Array)
    assert tj.jit(lambda x: x * isinstance(x, tj.Array))(2.0) == 2
    assert not isinstance([1], tj.Array)
    with pytest.raises(ArgumentError, match="Array: is the type of arrays, to annotate with"):
        tj.Array([1])  # type: ignore[call-arg]


def test_ravel() -> None:
    tree = {"a": np.ones((2, 2), np.float32), "b": 3}
    vector, unravel = tj.flatten_util.ravel_pytree(tree)
    assert (vector.dtype, vector.tolist()) == (np.float32, [1, 1, 1, 1, 3])
    back = unravel(vector * 2)
    assert (back["a"].dtype, back["a"].tolist(), back["b"]) == (np.float32, [[2, 2], [2, 2]], 6)
    with pytest.raises(ShapeError, match=r"unravel: the vector must be \(5,\)"):
        unravel(vector[1:])
    function = tj.jit(lambda v: tj.flatten_util.ravel_pytree(unravel(v))[0])
    np.testing.assert_array_equal(function(vector), vector)


def test_from_dlpack() -> None:
    np.testing.assert_array_equal(tj.numpy.from_dlpack(X), X)
    np.testing.assert_array_equal(tj.numpy.from_dlpack(jnp.asarray(X)), X)

    @tj.jit
    def written(x: Any) -> Any:
        y = x.copy()
        np.from_dlpack(y)[0] = 0
        return y

    assert (written(X)[0] == 0).all()
    with pytest.raises(ArgumentError, match="list has no __dlpack__"):
        tj.numpy.from_dlpack([1])
