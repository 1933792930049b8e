"""The real XLA with eight host devices: runs programs that a file names, in a process of its own.

XLA makes as many devices as a flag says that is read when its client is made, so that they cannot
be had in a process that has a client already. `tests.replicas.judge` starts this one.
"""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _hlo, _jax, xla_client


def run(text: str, arrays: list[np.ndarray], replicas: int, partitions: int) -> list[np.ndarray]:
    """The results, each [devices, …], of arrays [devices, …] of rank 2 at least."""
    client = jax.devices("cpu")[0].client
    count = replicas * partitions
    devices = client.local_devices()[:count]
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = replicas, partitions
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = replicas, partitions
    grid = np.arange(count).reshape(replicas, partitions)
    build.device_assignment = xla_client.DeviceAssignment.create(grid)
    build.debug_options.xla_backend_optimization_level = 0
    build.debug_options.xla_llvm_disable_expensive_passes = True
    if partitions > 1:
        # The program is what one partition runs; nothing is left to be partitioned.
        build.use_spmd_partitioning = True
        text = re.sub(r"^  (?:ROOT )?%\S+ = (\(.*?\)(?= )|\S+) .+$", _manual, text, flags=re.M)
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    program = _jax.mlir.hlo_to_stablehlo(proto)
    executable = client.compile_and_load(program, xla_client.DeviceList(tuple(devices)), options)
    sharding = NamedSharding(Mesh(np.array(devices), ("device",)), PartitionSpec("device"))
    given = [
        jax.make_array_from_single_device_arrays(
            (array.shape[0] * array.shape[1], *array.shape[2:]),
            sharding,
            [jax.device_put(part, device) for part, device in zip(array, devices, strict=True)],
        )
        for array in arrays
    ]
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(part) for part in parts]) for parts in results]


def _manual(line: re.Match[str]) -> str:
    """An instruction that is to be left as it is; a tuple's is said of each array."""
    shape = line[1]
    arrays = ["{manual}"] * shape.count("[")
    return f"{line[0]}, sharding={arrays[0] if shape[0] != '(' else '{' + ', '.join(arrays) + '}'}"


def main(folder: Path) -> None:
    programs: list[tuple[str, list[np.ndarray], int, int]]
    programs = pickle.loads((folder / "programs").read_bytes())
    results: list[Any] = []
    for program in programs:
        try:
            results.append(run(*program))
        except jax.errors.JaxRuntimeError as error:
            results.append(str(error))
    (folder / "results").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main(Path(sys.argv[1]))
