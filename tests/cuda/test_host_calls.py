"""Programs for CUDA devices call the host: callbacks, queues, custom calls, the random state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit import lax
from tracejit.backends.launch_plan import HostCall, LaunchPlan
from tracejit.errors import UnsupportedError
from tracejit.graph import OPS
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.cuda.build import launch_plan, source_of
    from tracejit.backends.tvm.cuda.target import cuda_target
    from tracejit.backends.tvm.lower.lowering import lower

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_callback_gets_what_kernels_made_before(emulated: Emulator) -> None:
    """Device, host, device: each sees what came before it."""
    seen = []

    def host(x: np.ndarray) -> np.ndarray:
        seen.append(x.copy())
        return np.sort(x, axis=1)[:, ::-1]

    def f(x: Any) -> Any:
        doubled = x * 2
        return tj.pure_callback(host, doubled, doubled) + 1

    made = tj.jit(f, target="cuda")(X)
    assert made.tolist() == [[5, 3, 1], [11, 9, 7]]
    assert [each.tolist() for each in seen] == [(2 * X).tolist()]


def test_callbacks_in_a_loop_come_in_order(
    emulated: Emulator, capsys: pytest.CaptureFixture[str]
) -> None:
    def f(x: Any) -> Any:
        def body(i: Any, total: Any) -> Any:
            tj.debug.print("step {i}: {total}", i=i, total=total)
            return total + x[i]

        return lax.fori_loop(0, 3, body, 0.0)

    assert float(tj.jit(f, target="cuda")(np.array([1.0, 2.0, 3.0]))) == 6
    assert capsys.readouterr().out == "step 0: 0.0\nstep 1: 1.0\nstep 2: 3.0\n"


def test_what_a_callback_raises_comes_through_and_work_goes_on(emulated: Emulator) -> None:
    def host(x: np.ndarray) -> np.ndarray:
        if x[0] > 2:
            raise ZeroDivisionError("too large")
        return x

    f = tj.jit(lambda x: tj.pure_callback(host, x, x * 1) + 1, target="cuda")
    with pytest.raises(ZeroDivisionError, match="too large"):
        f(np.array([3.0]))
    assert f(np.array([1.0])).tolist() == [2]


def test_library_functions_without_kernels(emulated: Emulator) -> None:
    a = np.random.default_rng(0).normal(size=(5, 5))
    f = tj.jit(lambda a: np.linalg.eigvals(a @ a.T).real.sum() + np.trace(a), target="cuda")
    assert np.allclose(float(f(a)), np.trace(a @ a.T) + np.trace(a))


def test_empty_operands_and_results(emulated: Emulator) -> None:
    f = tj.jit(lambda x: tj.pure_callback(lambda v: v, x, x) + 1, target="cuda")
    assert f(np.zeros((0, 3))).shape == (0, 3)


def test_a_plan_with_calls_of_the_host_is_kept(emulated: Emulator) -> None:
    """The disk cache's form holds the call, which no library for C can have."""
    sample = next(s for s in all_samples() if OPS[s.op].function == "rng_get_and_update_state")
    program = lower(joint_module(sample, element_types(sample)).entry, cuda_target("sm_90a"))
    nodes, _ = launch_plan(program, source_of(program))
    plan = LaunchPlan(nodes, 0, {})
    assert HostCall in map(type, nodes)
    assert LaunchPlan.from_json(plan.to_json()).nodes == nodes
    assert plan.has_control


def test_export_refuses_calls_of_the_host(emulated: Emulator, tmp_path: Any) -> None:
    compiled = (
        tj.jit(lambda x: tj.pure_callback(np.sort, x, x), target="cuda:sm_90a").lower(X).compile()
    )
    with pytest.raises(UnsupportedError, match="needs Python, which a library for C does not have"):
        compiled.export(tmp_path / "model.so")
