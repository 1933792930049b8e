"""What XLA's passes make of our samples is read, and computes what the sample does."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from jaxlib import _hlo, _jax, xla_client

from tests.plain import plain
from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.comparing import compare
from tests.samples.values import element_types
from tracejit import tree
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS, Module
from tracejit.hlo import parse, to_text
from tracejit.ops.expansions import expand
from tracejit.verifier import verify

# Ops that one device has no use for, that draw new numbers, or that only this process knows.
LEFT_OUT = {
    "channels",
    "custom",
    "dumps",
    "dynamic_sizes",
    "permutes",
    "random",
    "replicas",
    "starts",
    "tokens",
}


@functools.cache
def client() -> Any:
    return xla_client.make_cpu_client()


def optimised(module: Module) -> str:
    """The text of what XLA compiles in the end."""
    simple = Module(module.name, plain(expand(module.entry)))
    proto = _hlo.hlo_module_from_text(to_text(simple)).as_serialized_hlo_module_proto()
    device = client().local_devices()[0]
    options = xla_client.CompileOptions()
    options.env_option_overrides = [("xla_allow_excess_precision", False)]
    debug = options.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0  # of the machine code, which nobody runs
    debug.xla_llvm_disable_expensive_passes = True
    program = _jax.mlir.hlo_to_stablehlo(proto)
    compiled = client().compile_and_load(program, xla_client.DeviceList((device,)), options)
    printing = _hlo.HloPrintOptions()
    printing.print_large_constants = True
    (made,) = compiled.hlo_modules()
    return str(made.to_string(printing))


@pytest.mark.exhaustive
@pytest.mark.parametrize("sample", every_sample(lambda s: OPS[s.op].family not in LEFT_OUT))
def test_sample_after_passes(sample: Sample) -> None:
    module = joint_module(sample, element_types(sample))
    made = verify(parse(optimised(module)))
    arrays = draw_joint(sample, element_types(sample))
    actual = tree.leaves(evaluate(made.entry, arrays))
    expected = tree.leaves(evaluate(module.entry, arrays))
    problems = [
        compare(sample, np.asarray(a), np.asarray(b)) for a, b in zip(actual, expected, strict=True)
    ]
    assert not any(problems), problems
