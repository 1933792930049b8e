"""Keys: what random numbers are made from, and all that they depend on.

key = random.key(0)
first, second = random.split(key)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.shapes import ElementType
from tracejit.trace.convert import as_instruction, operand
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift
from tracejit.tracebacks import names_misuse

IMPLEMENTATION = "threefry2x32"
WORD = ElementType.U32


class Key:
    """One key, or an array of keys; the words behind them are `key_data`'s.

    A node of trees whose leaf is the words, so that keys are arguments and results of functions
    under jit, values that loops carry, and mapped over. Indexing, iteration and `reshape` work on
    the array of keys; arithmetic, and conversion to an array of numbers, raise.
    """

    __slots__ = ("_words",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, words: Any) -> None:
        self._words = words

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of keys; () for one key."""
        return tuple(self._words.shape[:-1])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> str:
        """The name of the keys' type: key<threefry2x32>."""
        return f"key<{IMPLEMENTATION}>"

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len: one key has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Key]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Key:
        places = index if isinstance(index, tuple) else (index,)
        if not any(place is Ellipsis for place in places):
            places = (*places, Ellipsis)
        whole = (*places, slice(None))
        return Key(self._words[whole])

    def reshape(self, *shape: Any) -> Key:
        """The same keys under another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return Key(self._words.reshape(*sizes, 2))

    def ravel(self) -> Key:
        """All keys in one row."""
        return self.reshape(-1)

    def __eq__(self, other: object) -> Any:
        """Which keys are equal, element by element."""
        if not isinstance(other, Key):
            return NotImplemented
        return (self._words == other._words).all(-1)

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, Key):
            return NotImplemented
        return (self._words != other._words).any(-1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise ArgumentError(
            "a random key is no array of numbers; random.key_data(key) gives its words"
        )

    def __repr__(self) -> str:
        return f"Key({self.dtype}{list(self.shape)}, {self._words!r})"


tree.register_node(Key, lambda key: ((key._words,), None), lambda _, children: Key(children[0]))


def raw(key: Any, function: str) -> Any:
    """The words of one key: uint32 of shape (2,). Raises for what is no key, and for several."""
    words = several(key, function)
    if len(words.shape) != 1:
        shape = tuple(words.shape[:-1])
        raise ShapeError(
            f"{function}: key must be one key, not an array of shape {shape}; take one by indexing "
            f"it, or use vmap"
        )
    return words


def several(key: Any, function: str) -> Any:
    """The words of a key or of an array of keys: uint32 of shape (..., 2)."""
    words = key._words if isinstance(key, Key) else key
    if isinstance(words, Tracer | np.ndarray):
        if words.dtype == np.uint32 and words.shape[-1:] == (2,):
            return words
        given = f"an array of {words.dtype} with shape {tuple(words.shape)}"
    else:
        given = f"a {type(words).__name__}"
    raise ArgumentError(
        f"{function}: key must come from random.key, split or fold_in (or be uint32 words of shape "
        f"(2,)), and not be {given}"
    )


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes ``function(words, ...)``, which records, a public function of a key.

    It may be called inside and outside traces; ``words`` are those of one key, as a traced array.
    """
    name = function.__name__.removeprefix("_")

    @functools.wraps(function)
    def record(words: Any, *args: Any, **kwargs: Any) -> Any:
        return function(lift(as_instruction(words), False), *args, **kwargs)

    call = public(record)

    @names_misuse
    @functools.wraps(function)
    def draw(key: Any, *args: Any, **kwargs: Any) -> Any:
        return call(raw(key, name), *args, **kwargs)

    signature = inspect.signature(function)
    _, *others = signature.parameters.values()
    key = inspect.Parameter("key", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    setattr(draw, "__signature__", signature.replace(parameters=[key, *others]))  # noqa: B010
    return draw


def _seed_words(seed: Any) -> Any:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer | np.ndarray | Tracer):
        raise ArgumentError(f"key: seed must be an integer, not a {type(seed).__name__}")
    if isinstance(seed, int):
        return _split_integer(seed)
    if not np.issubdtype(seed.dtype, np.integer):
        raise ElementTypeError(f"key: seed must be an integer, not of dtype {seed.dtype}")
    if seed.shape:
        raise ShapeError(f"key: seed must be a scalar, not of shape {tuple(seed.shape)}")
    if isinstance(seed, Tracer):
        return public(_seed_of_traced)(seed)
    return _split_integer(int(seed), seed.dtype.itemsize == 8)


def _split_integer(seed: int, wide: bool = True) -> np.ndarray:
    high = seed >> 32 & 0xFFFFFFFF if wide else 0
    return np.array([high, seed & 0xFFFFFFFF], np.uint32)


def _seed_of_traced(seed: Tracer) -> Tracer:
    wide = seed.astype(np.uint64)
    mask = 0xFFFFFFFFFFFFFFFF if seed.dtype.itemsize == 8 else 0xFFFFFFFF
    return words_of((wide & np.uint64(mask)).instruction, high_first=True)


def words_of(pair: Instruction, *, high_first: bool = False) -> Tracer:
    """Pairs of words, as u64 of any shape, as u32 with a last dimension of 2, the low one first."""
    value = lift(pair, False)
    low, high = value & np.uint64(0xFFFFFFFF), value >> np.uint64(32)
    first, second = (high, low) if high_first else (low, high)
    made: Tracer = np.stack([first, second], -1).astype(np.uint32)  # type: ignore[assignment]
    return made


def key(seed: Any) -> Key:
    """The key of a seed: the lower 64 bits of an integer.

    Equal to that of ``jax.random.key`` with 64-bit types enabled. Raises `ArgumentError` for other
    values than integers.

    >>> tj.random.uniform(tj.random.key(0), (2,)).round(4)
    array([0.4185, 0.2163])
    """
    return Key(_seed_words(seed))


def PRNGKey(seed: Any) -> Any:
    """The words of `key`: an array uint32 of shape (2,), which every function here takes, too.

    Raises `ArgumentError` for arguments that it does not take and `ElementTypeError` for an
    element type that it does not take.

    >>> tj.random.PRNGKey(7)
    array([0, 7], dtype=uint32)
    """
    return _seed_words(seed)


def key_data(keys: Any) -> Any:
    """The words of keys: uint32 of the keys' shape and a last dimension of 2.

    Raises `ArgumentError` for what is no key.

    >>> tj.random.key_data(tj.random.key(7))
    array([0, 7], dtype=uint32)
    """
    return several(keys, "key_data")


def wrap_key_data(key_bits_array: Any) -> Key:
    """Keys with these words; the inverse of `key_data`.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.random.wrap_key_data(np.uint32([0, 7])).shape
    ()
    """
    if isinstance(key_bits_array, list | tuple):
        key_bits_array = np.asarray(key_bits_array, np.uint32)
    return Key(several(key_bits_array, "wrap_key_data"))


def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to.

    Raises `ArgumentError` for what is no key.

    >>> tj.random.key_impl(tj.random.key(7))
    'threefry2x32'
    """
    several(keys, "key_impl")
    return IMPLEMENTATION


def clone(key: Any) -> Any:
    """The same key.

    Raises `ArgumentError` for what is no key.

    >>> tj.random.key_data(tj.random.clone(tj.random.key(7)))
    array([0, 7], dtype=uint32)
    """
    several(key, "clone")
    return key


def same_kind(given: Any, words: Any) -> Any:
    """``words`` as keys if ``given`` is one, else as they are."""
    return Key(words) if isinstance(given, Key) else words


def integer_operand(function: str, value: Any) -> Instruction:
    """An integer as an instruction. Raises `ElementTypeError` for another type."""
    made = operand(value)
    if not made.element_type.is_integral:
        raise ElementTypeError(f"{function}: data must be an integer, not {made.element_type}")
    return made.natural
