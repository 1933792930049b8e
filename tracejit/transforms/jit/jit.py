"""`jit`: runs a function once on abstract arrays, compiles the graph, and calls that from then on.

@jit
def step(parameters, x): ...

@jit(static_argnames="depth")
def power(x, depth): ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar, overload

from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.jitted import JitFunction
from tracejit.transforms.jit.mutation import Mutated, MutatingFunction
from tracejit.transforms.jit.signature import Names, Numbers

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    target: str = "cpu",
    check: bool = False,
    fast_math: bool = False,
    record_numpy: bool = True,
    memory_budget: int | None = None,
    autograph: bool = False,
    tiered: bool = False,
    tune: float | None = None,
    mutates: None = None,
) -> JitFunction[P, R]: ...


@overload
def jit(
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    target: str = "cpu",
    check: bool = False,
    fast_math: bool = False,
    record_numpy: bool = True,
    memory_budget: int | None = None,
    autograph: bool = False,
    tiered: bool = False,
    tune: float | None = None,
    mutates: None = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    target: str = "cpu",
    check: bool = False,
    fast_math: bool = False,
    record_numpy: bool = True,
    memory_budget: int | None = None,
    autograph: bool = False,
    tiered: bool = False,
    tune: float | None = None,
    mutates: Mutated,
) -> Callable[P, R]: ...


@overload
def jit(
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    target: str = "cpu",
    check: bool = False,
    fast_math: bool = False,
    record_numpy: bool = True,
    memory_budget: int | None = None,
    autograph: bool = False,
    tiered: bool = False,
    tune: float | None = None,
    mutates: Mutated,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@api_boundary
def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    target: str = "cpu",
    check: bool = False,
    fast_math: bool = False,
    record_numpy: bool = True,
    memory_budget: int | None = None,
    autograph: bool = False,
    tiered: bool = False,
    tune: float | None = None,
    mutates: Mutated | None = None,
) -> Any:
    """``function``, compiled for each combination of shapes and dtypes it is called with.

    Arguments and results are trees of arrays and numbers. Static arguments, by position or by
    name, may be any hashable objects; each value is compiled for. Donated arguments are given away:
    their arrays are written over and handed out as results of the same shape and element type, so
    that no memory is taken for these; what they hold afterwards is a result's value, or nothing in
    particular, and a warning names those that no result can use. With ``check`` the function is
    interpreted, which is slow, and raises where an index is out of range, an integer is divided by
    zero, or an operation makes the first NaN or infinity; nothing is written over then, and no
    generated code runs. ``fast_math`` lets the compiler
    reorder and contract sums and products, divide by multiplying with a reciprocal and ignore the
    sign of zero, and takes quicker functions: powers are within 2 + 3 |y log(x)| ulp. NaN
    and infinity stay what they are. ``autograph`` rewrites the
    function so that its ``if``, ``while`` and ``for`` may depend on traced values.
    ``record_numpy=False`` leaves ``np.zeros`` and its like, called on no traced value, to NumPy.
    ``memory_budget`` is how many bytes arguments, results and everything between them may take, as
    `Compiled.memory_analysis` counts: values are computed again instead of being kept until that is
    so, and `MemoryBudgetError` is raised if it cannot be. ``tiered`` compiles in another process:
    calls are answered by the interpreter until the code is there, and `wait_until_compiled` waits
    for it. ``tune`` is for how many seconds the first call of each kind measures, on its arguments,
    other ways to write the kernels that take most time; what is clearly quicker is taken, and kept
    on disk for other processes that tune. Sums may be added in another order then. ``mutates``
    names the arguments, NumPy arrays, that the function writes to: their new values are written
    back. ``target`` is "cpu", this machine or what the environment variable ``TRACEJIT_CPU`` names,
    or "cpu:" and LLVM's name of a processor, such as "cpu:x86-64-v3" or "cpu:neoverse-v1"; calls
    raise `UnsupportedError` where this machine cannot run the code. Also a decorator, with and
    without arguments.

    Raises `ArgumentError`, naming the argument, for what is no array of numbers, and for a donated
    array that shares memory with another argument, `ReadOnlyError` for one that is read-only,
    `MemoryBudgetError`, with the least that can be reached, for a budget that is too small, and
    `CompilationError` where the compiler fails, which a call of a ``tiered`` function does once it
    is known.

    >>> tj.jit(lambda x, y: x @ y + 1)(np.ones((2, 3)), np.ones(3))
    array([4., 4.])
    """

    def compiled(
        function: Callable[P, R],
        rewritten: Callable[[], Callable[P, R] | None] | None = None,
        mutated: tuple[Collection[int], Collection[str]] = ((), ()),
    ) -> JitFunction[P, R]:
        return JitFunction(
            function,
            static_argnums,
            static_argnames,
            donate_argnums,
            donate_argnames,
            target,
            check,
            fast_math,
            record_numpy,
            memory_budget,
            autograph and mutates is None,
            tiered,
            tune,
            rewritten,
            mutated,
        )

    def decorate(function: Callable[P, R]) -> Any:
        if mutates is None:
            return compiled(function)
        return MutatingFunction(function, mutates, compiled, autograph)

    return decorate if function is None else decorate(function)
