"""The table of JAX's names in docs/jax_names.md: which ones there are, and why others are absent.

python -m tests.project.jax_names          writes the page

The names are those that the installed JAX documents: the public names of its modules.
"""

from __future__ import annotations

import fnmatch
import importlib
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

import tracejit as tj

PAGE = Path(__file__).parents[2] / "docs" / "jax_names.md"

MODULES = (
    "",
    "debug",
    "dtypes",
    "flatten_util",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "profiler",
    "random",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
    "sharding",
    "tree",
    "tree_util",
    "typing",
)
"""JAX's documented modules; those under ``jax.experimental`` come and go, and are not followed."""

DEVICES = "`devices` lists threads, ranks of MPI or CUDA devices; a mesh chooses among them"
SEVERAL = "`shard_map` and `tracejit.distributed` do this, with a mesh that is passed to them"
AXES = "use `ppermute`, `all_to_all` or `psum`"
SETTING = "a setting of JAX's own running; here `jit` has options"
TYPES = "element types are NumPy's, without a switch"
CHECKS = "use `jit(f, check=True)`"
PRIMITIVE = "a primitive of JAX; operations here are XLA's, in `tracejit.ops`"
REFERENCES = "arrays are written in place as NumPy's are; no references are needed"
INTERNAL = "works on JAX's own intermediate form"
TOKENS = "effects are kept in order without tokens in the user's hands"
DIVISION = "describes or divides operations for other devices; write the operation itself"
ACCURACY = "every function has one accuracy"
SOLVERS = "write the iteration: `while_loop` has a derivative, and `custom_vjp` gives another"
NO_LAPACK = "no kernel of LAPACK's for it yet; use `numpy.linalg` or call SciPy by `pure_callback`"
LATER = "not written yet"
KNOWN = "a matrix of known numbers: make it by SciPy outside of the traced function"
OLD = "NumPy 2 has removed the name"
FILES = "reads or writes files or memory: call NumPy outside of the traced function"
NARROW = "the element type has no arithmetic in XLA's CPU backend"

ABSENT: Mapping[str, Mapping[str, str]] = {
    "": {
        "Device Shard default_device host_count": DEVICES,
        "host_id host_ids live_arrays copy_to_host_async": DEVICES,
        "memory transfer_guard* typeof": DEVICES,
        "make_array_from_callback make_array_from_single_device_arrays": SEVERAL,
        "process_indices reshard set_mesh smap": SEVERAL,
        "auto_pcast remove_size_one_mesh_axis_from_type": SEVERAL,
        "allow_f16_reductions array_garbage_collection_guard check_tracer_leaks": SETTING,
        "checking_leaks debug_key_reuse default_matmul_precision default_prng_impl": SETTING,
        "enable_checks enable_custom_prng ensure_compile_time_eval explain_cache_misses": SETTING,
        "jax2tf_associative_scan_reductions legacy_prng_key log_compiles": SETTING,
        "make_user_context no_execution no_tracing numpy_rank_promotion": SETTING,
        "softmax_custom_jvp thread_guard threefry_partitionable clear_caches": SETTING,
        "print_environment_info": SETTING,
        "enable_x64 numpy_dtype_promotion float0": TYPES,
        "debug_infs debug_nans": CHECKS,
        "Ref empty_ref free_ref freeze new_ref": REFERENCES,
        "ad ds closure_convert fwd_and_bwd": INTERNAL,
        "custom_gradient": "use `custom_vjp`",
        "effects_barrier": "effects are complete when a call returns",
    },
    "debug": {
        "DebugEffect OrderedDebugEffect": INTERNAL,
        "inspect_array_sharding visualize_array_sharding visualize_sharding": DEVICES,
        "log": "use `debug.callback(logger.info, ...)`",
    },
    "dtypes": {"*": TYPES},
    "lax": {
        "*_p": PRIMITIVE,
        "AccuracyMode Tolerance": ACCURACY,
        "DotAlgorithm DotAlgorithmPreset PrecisionLike": (
            'precisions are strings: "default", "high", "highest"'
        ),
        "ConvGeneralDilatedDimensionNumbers FftType GatherScatterMode RandomAlgorithm": (
            "operations take strings and tuples in its place"
        ),
        "after_all create_token": TOKENS,
        "pcast precv psend pshuffle pswapaxes ragged_all_to_all": AXES,
        "conv_general_dilated_local conv_general_dilated_patches": LATER,
        "conv_general_permutations conv_general_shape_tuple conv_shape_tuple": DIVISION,
        "conv_transpose_shape_tuple conv_with_general_padding padtype_to_pads": DIVISION,
        "reduce_window_shape_tuple platform_dependent shape_as_value stage": DIVISION,
        "with_sharding_constraint broadcast_like": DIVISION,
        "custom_linear_solve custom_root": SOLVERS,
        "dce_sink": "what is not used is left out",
        "igamma_grad_a random_gamma_grad": "the derivatives are recorded by `grad`",
        "index_take mulhi scatter_apply": LATER,
        "rng_bit_generator rng_uniform": "use `tracejit.random`",
    },
    "lax.linalg": {
        "*_p": PRIMITIVE,
        "EigImplementation EighImplementation SvdAlgorithm": "LAPACK is the only implementation",
        "cholesky_update eig hessenberg householder_product lu_pivots_to_permutation": NO_LAPACK,
        "lu ormqr qdwh schur symmetric_product tridiagonal tridiagonal_solve": NO_LAPACK,
    },
    "nn": {
        "get_scaled_dot_general_config scaled_dot_general scaled_matmul": "use `lax.scaled_dot`"
    },
    "numpy": {
        "ComplexWarning complex_ float_": OLD,
        "float6_* int1 uint1": NARROW,
        "frombuffer fromfile fromstring load save savez": FILES,
        "frompyfunc": "makes arrays of Python objects; use `vectorize`",
    },
    "random": {
        "key_dtype": TYPES,
        "multinomial": LATER,
        "random_gamma_p": PRIMITIVE,
    },
    "scipy.linalg": {
        "funm hessenberg polar qr_multiply rsf2csf schur sqrtm solve_sylvester": NO_LAPACK,
        "eigh_tridiagonal expm_frechet": NO_LAPACK,
        "circulant companion convolution_matrix dft fiedler fiedler_companion hadamard": KNOWN,
        "hankel helmert hilbert invhilbert invpascal leslie pascal": KNOWN,
    },
    "scipy.signal": {"csd detrend istft stft welch": LATER},
    "scipy.special": {"*": LATER},
    "scipy.cluster.vq": {"*": LATER},
    "scipy.optimize": {
        "*": "use `tracejit.optim`, or give `value_and_grad` to SciPy's own `minimize`"
    },
    "scipy.stats": {"*": LATER},
    "sharding": {"*": "`tracejit` itself has meshes and shardings, without a module of their own"},
    "profiler": {"*": "use `explain(measure=True)` of a compiled function"},
    "tree": {"static": LATER},
    "tree_util": {
        "KeyEntry": "a protocol for JAX's own type checks",
        "default_registry": "classes are registered by the functions of this module",
        "flatten_one_level_with_keys is_tree_node": LATER,
    },
}
"""Why a name is absent, by module; names may be patterns."""


def public_names(module: str) -> list[str]:
    """The names that a user of one of JAX's modules sees, without modules and deprecated ones."""
    theirs = importlib.import_module(f"jax.{module}" if module else "jax")
    deprecated = getattr(theirs, "_deprecations", {})
    listed = getattr(theirs, "__all__", None) or [n for n in dir(theirs) if n[0] != "_"]
    names = {
        name
        for name in listed
        if name not in deprecated and not isinstance(getattr(theirs, name), types.ModuleType)
    }
    return sorted(names, key=str.lower)


def ours(module: str) -> Any:
    """Our module of the same name, or None."""
    made: Any = tj
    for part in module.split(".") if module else ():
        made = getattr(made, part, None)
    return made


def reason(module: str, name: str) -> str:
    """Why a name is absent; "" where nobody has said so."""
    for words, why in ABSENT.get(module, {}).items():
        if any(fnmatch.fnmatchcase(name, word) for word in words.split()):
            return why
    return ""


def rows(module: str) -> Iterator[tuple[str, str | None]]:
    """(name, None where there is one, else why not)."""
    there = ours(module)
    for name in public_names(module):
        is_here = there is not None and hasattr(there, name)
        yield name, None if is_here else reason(module, name)


def page() -> str:
    """The page's text."""
    parts = [
        "# JAX's names",
        "",
        "Which public names of JAX's modules `tracejit` has under the same name, with the same",
        "arguments, and why each other one is absent. A program that uses only the first kind runs",
        "with `import tracejit as jax` and `import tracejit.numpy as jnp`, up to what differs",
        "by design: float64 is the default type, results are NumPy arrays, and arrays can be",
        "written to.",
        "",
        f"Written by `python -m tests.project.jax_names` for JAX {jax.__version__}.",
    ]
    for module in MODULES:
        listed = list(rows(module))
        here = [f"`{name}`" for name, why in listed if why is None]
        absent: dict[str, list[str]] = {}
        for name, why in listed:
            if why is not None:
                absent.setdefault(why, []).append(f"`{name}`")
        title = f"jax.{module}" if module else "jax"
        parts += ["", f"## {title}", "", f"{len(here)} of {len(listed)} names."]
        parts += ["", " ".join(here)] if here else []
        if absent:
            parts += ["", "| Absent | because |", "| --- | --- |"]
            parts += [f"| {' '.join(names)} | {why} |" for why, names in absent.items()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
