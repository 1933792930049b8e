"""Records of numpy.linalg, on matrices far from singular, and of numpy.fft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.numpy_api.options import TRUTH, axes, axis, drawn, of_list, one_of, own_axes
from tests.numpy_api.records import Option, Record

NORMS = one_of("backward", "ortho", "forward", None)


def square(np: Any, x: Any) -> Any:
    """A matrix that is far from singular."""
    return x + 20 * np.eye(x.shape[-1], dtype=x.dtype)


def symmetric(np: Any, x: Any) -> Any:
    """A Hermitian matrix that is positive definite."""
    return square(np, (x + np.conj(np.swapaxes(x, -1, -2))) / 4)


def linear(call: Callable[..., Any], *words: str, **options: Option) -> Record:
    """A function of linear algebra."""
    return Record(call, words, 1e-4, options)


LINALG: dict[str, Record] = {
    "linalg.cholesky": linear(
        lambda np, x, upper: np.linalg.cholesky(symmetric(np, x), upper=upper), "xS", upper=TRUTH
    ),
    "linalg.cond": linear(
        lambda np, x, p: np.linalg.cond(square(np, x), p), "xS", p=one_of(None, 1, -1, 2, "fro")
    ),
    "linalg.cross": drawn("linalg.cross", "hs", "h="),
    "linalg.det": linear(lambda np, x: np.linalg.det(square(np, x)), "xS"),
    "linalg.diagonal": drawn("linalg.diagonal", "aC", offset=st.integers(-4, 4)),
    "linalg.eig": linear(
        lambda np, x: np.sort(np.linalg.eig(symmetric(np, x)).eigenvalues.real), "xs"
    ),
    "linalg.eigh": linear(
        lambda np, x, lower: np.linalg.eigh(symmetric(np, x), "L" if lower else "U").eigenvalues,
        "xS",
        lower=TRUTH,
    ),
    "linalg.eigvals": linear(lambda np, x: np.sort(np.linalg.eigvals(symmetric(np, x)).real), "xs"),
    "linalg.eigvalsh": linear(lambda np, x: np.linalg.eigvalsh(symmetric(np, x)), "xS"),
    "linalg.inv": linear(lambda np, x: np.linalg.inv(square(np, x)), "xS"),
    "linalg.lstsq": linear(lambda np, x, y: np.linalg.lstsq(square(np, x), y)[0], "xs", "x="),
    "linalg.matmul": drawn("linalg.matmul", "ns", "n="),
    "linalg.matrix_norm": linear(
        lambda np, x, **o: np.linalg.matrix_norm(x, **o),
        "xC",
        ord=one_of("fro", 1, -1, np.inf, -np.inf, 2, "nuc"),
        keepdims=TRUTH,
    ),
    "linalg.matrix_power": linear(
        lambda np, x, n: np.linalg.matrix_power(square(np, x), n), "xS", n=st.integers(-2, 4)
    ),
    "linalg.matrix_rank": drawn("linalg.matrix_rank", "xC"),
    "linalg.matrix_transpose": drawn("linalg.matrix_transpose", "aC"),
    "linalg.multi_dot": of_list("linalg.multi_dot", "ns", "n=", "n="),
    "linalg.norm": linear(
        lambda np, x, **o: np.linalg.norm(x, **o),
        "x+",
        ord=one_of(None, 1, 2, np.inf, -np.inf, 0),
        axis=axis,
        keepdims=TRUTH,
    ),
    "linalg.outer": drawn("linalg.outer", "nv", "nv"),
    "linalg.pinv": linear(lambda np, x: np.linalg.pinv(square(np, x)), "xS"),
    "linalg.qr": linear(
        lambda np, x, mode: np.linalg.qr(square(np, x), mode=mode),
        "xS",
        mode=one_of("reduced", "complete", "r"),
    ),
    "linalg.slogdet": linear(lambda np, x: np.linalg.slogdet(square(np, x)), "xS"),
    "linalg.solve": linear(lambda np, x, y: np.linalg.solve(square(np, x), y), "xS", "x="),
    "linalg.svd": linear(
        lambda np, x, full: np.linalg.svd(x, full_matrices=full).S, "xC", full=TRUTH
    ),
    "linalg.svdvals": linear(lambda np, x: np.linalg.svdvals(x), "xC"),
    "linalg.tensordot": drawn("linalg.tensordot", "nC", "n=", axes=one_of(3, ([0], [0]))),
    "linalg.tensorinv": linear(lambda np, x: np.linalg.tensorinv(square(np, x), 1), "xs"),
    "linalg.tensorsolve": linear(lambda np, x: np.linalg.tensorsolve(square(np, x), x[:, 0]), "xs"),
    "linalg.trace": drawn("linalg.trace", "aC", offset=st.integers(-4, 4)),
    "linalg.vecdot": drawn("linalg.vecdot", "nC", "n=", axis=axis),
    "linalg.vector_norm": linear(
        lambda np, x, **o: np.linalg.vector_norm(x, **o),
        "x+",
        ord=one_of(1, 2, 3, np.inf, -np.inf, 0),
        axis=axes,
        keepdims=TRUTH,
    ),
}
LENGTH = one_of(None, 1, 2, 5)


def transform(name: str) -> Record:
    """A Fourier transform of one axis."""
    return drawn(f"fft.{name}", "n+", rtol=1e-5, n=LENGTH, axis=axis, norm=NORMS)


def transform_of_axes(name: str) -> Record:
    """A Fourier transform of several axes."""

    def call(np: Any, x: Any, axes: Any, **options: Any) -> Any:
        return getattr(np.fft, name)(x, axes=axes, **options)

    return Record(call, ("nC",), 1e-5, {"axes": own_axes, "norm": NORMS})


FFT: dict[str, Record] = {
    **{f"fft.{n}": transform(n) for n in ("fft", "ifft", "hfft")},
    **{
        f"fft.{n}": drawn(f"fft.{n}", "o+", rtol=1e-5, n=LENGTH, axis=axis, norm=NORMS)
        for n in ("rfft", "ihfft")
    },
    "fft.irfft": transform("irfft"),
    **{f"fft.{n}": transform_of_axes(n) for n in ("fft2", "ifft2", "fftn", "ifftn")},
    **{f"fft.{n}": transform_of_axes(n) for n in ("irfft2", "irfftn")},
    **{
        f"fft.{n}": Record(transform_of_axes(n).call, ("oC",), 1e-5, transform_of_axes(n).options)
        for n in ("rfft2", "rfftn")
    },
    **{
        f"fft.{n}": Record(
            lambda np, n, d, name=n: getattr(np.fft, name)(n, d),
            (),
            None,
            {"n": st.integers(1, 9), "d": one_of(1.0, 0.5, 3)},
        )
        for n in ("fftfreq", "rfftfreq")
    },
    **{f"fft.{n}": drawn(f"fft.{n}", "a+", axes=axes) for n in ("fftshift", "ifftshift")},
}
