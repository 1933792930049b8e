"""Type checkers and editors see the signature of a function that a transformation wraps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.project import checkout

SNIPPET = """
import tracejit as tj

def f(x: float, *, n: int = 2) -> tuple[float, int]:
    return x, n

@tj.jit(static_argnames="n")
def g(x: float, *, n: int = 2) -> float:
    return x * n

reveal_type(tj.jit(f))
reveal_type(tj.jit(f)(1.0))
reveal_type(g(2.0, n=1))
reveal_type(tj.jit(f, autograph=True)(1.0, n=3))
reveal_type(tj.autograph(f))
reveal_type(tj.vmap(f))
reveal_type(tj.vmap(g)(2.0))
reveal_type(tj.grad(f, has_aux=True))
reveal_type(tj.grad(g))
reveal_type(tj.value_and_grad(f, has_aux=True)(1.0, n=3))
reveal_type(tj.jit(tj.value_and_grad(g))(1.0, n=3))
reveal_type(tj.hessian(g))
reveal_type(tj.jacfwd(g))
reveal_type(tj.vjp(g, 1.0)[0])
reveal_type(tj.jvp(g, (1.0,), (1.0,)))
reveal_type(tj.linearize(f, 1.0))
reveal_type(tj.checkpoint(f))
reveal_type(tj.custom_vjp(f)(1.0, n=3))
print(tj.grad(lambda x: x * 2)(3.0), tj.grad(lambda x: x * 2))
tj.value_and_grad(f)(1.0, m=2)
tj.grad(g)("text")
g("text")
tj.jit(f)(1.0, m=2)
"""

EXPECTED = [
    "JitFunction[[x: float, *, n: int =], tuple[float, int]]",
    "tuple[float, int]",
    "float",
    "tuple[float, int]",
    "def (x: float, *, n: int =) -> tuple[float, int]",
    "def (x: float, *, n: int =) -> tuple[float, int]",
    "float",
    "Transformed[[x: float, *, n: int =], Any]",
    "Transformed[[x: float, *, n: int =], Any]",
    "tuple[tuple[float, int], Any]",
    "tuple[float, Any]",
    "Transformed[[x: float, *, n: int =], Any]",
    "Transformed[[x: float, *, n: int =], Any]",
    "float",
    "tuple[float, float]",
    "tuple[tuple[float, int], def (x: float, *, n: int =) -> tuple[float, int]]",
    "def (x: float, *, n: int =) -> tuple[float, int]",
    "tuple[float, int]",
]


def test_signatures(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(file), "--strict"],
        cwd=checkout.ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    places = re.compile(r"\b(builtins|[a-z_.]*\.jitted|[a-z_.]*\.signature)\.")
    shown = [places.sub("", text) for text in revealed]
    assert shown == EXPECTED, done.stdout
    assert 'incompatible type "str"; expected "float"' in done.stdout
    assert 'Unexpected keyword argument "m"' in done.stdout
    assert "Found 4 errors" in done.stdout
