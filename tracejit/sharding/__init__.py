"""Functions on several devices: meshes, shardings, `shard_map` and `pmap`.

mesh = make_mesh((4,), ("batch",), devices("cpu", 4))
shard_map(f, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))(x)
"""

from __future__ import annotations

from tracejit.sharding.arrays import (
    Shard,
    ShardedArray,
    make_array_from_process_local_data,
    visualize_sharding,
)
from tracejit.sharding.checkpoints import load_checkpoint, save_checkpoint
from tracejit.sharding.mesh import (
    Device,
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    devices,
    make_mesh,
)
from tracejit.sharding.parallel_map import pmap
from tracejit.sharding.shard_mapping import shard_map

__all__ = [
    "Device",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "ShardedArray",
    "devices",
    "load_checkpoint",
    "make_array_from_process_local_data",
    "make_mesh",
    "pmap",
    "save_checkpoint",
    "shard_map",
    "visualize_sharding",
]
