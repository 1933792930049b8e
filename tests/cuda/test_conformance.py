"""Sample records run on the emulated device, and compile for real ones."""

from __future__ import annotations

import re

import pytest

from tests.backends_tvm.test_emit_table import STRUCTURE
from tests.cuda import conformance
from tests.cuda.conformance import run
from tests.cuda.emulation import Emulator
from tests.samples.cases import all_samples
from tracejit.cuda.nvrtc import Compiler
from tracejit.graph import OPS
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.codegen.rules import indexed, pointwise
    from tracejit.backends.tvm.cuda.build import joined
    from tracejit.backends.tvm.cuda.target import CudaSchedules
    from tracejit.backends.tvm.passes.legalize.composites import expansions
    from tracejit.backends.tvm.passes.legalize.tokens_and_async import simpler_names
    from tracejit.backends.tvm.target.host_calls import ONLY_ON_HOSTS

ONE_IN = 24


def test_samples_on_the_emulated_device(emulated: Emulator, nvrtc_of_the_wheel: Compiler) -> None:
    """One record in `ONE_IN` in two orders of threads, and through NVRTC for three generations."""
    samples = [s for n, s in enumerate(all_samples()) if n % ONE_IN == ONE_IN // 2]
    assert len(samples) > 30
    found = run(samples, nvrtc_of_the_wheel, ("sm_80", "sm_90a", "sm_100"))
    assert not found.failures
    assert not found.refused
    assert found.checked > 30


def test_a_wrong_kernel_is_found(emulated: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness bites: sums that start their threads one element late differ."""
    samples = [s for s in all_samples() if OPS[s.op].function == "reduce"][:1]
    right = joined

    def wrong(sources: object) -> str:
        text = right(sources)  # type: ignore[arg-type]
        broken = re.sub(r"for \(int (i\d+) = 0;", r"for (int \1 = 1;", text)
        assert broken != text
        return broken

    monkeypatch.setattr(conformance, "joined", wrong)
    assert conformance.run(samples).failures
    emulated.reports()


def test_every_op_has_a_rule() -> None:
    """Ops have kernels, become others, or are evaluated by the host."""
    tables = (simpler_names, pointwise, indexed, expansions)
    schedules = CudaSchedules()
    missing = {
        op.function
        for op in OPS.values()
        if op not in STRUCTURE
        and op not in (CONDITIONAL, WHILE)
        and op.family != "dynamic_sizes"
        and not any(table.get(op) is not None for table in tables)
        and schedules.anchored(op) is None
        and op not in ONLY_ON_HOSTS
    }
    assert missing == set()
