"""The partitioner: a module with ``sharding=`` annotations as the program of each partition.

partition(module).module        collectives where XLA's SPMD partitioner puts them
"""

from tracejit.passes.partition.partitioner import Partitioned, is_annotated, partition

__all__ = ["Partitioned", "is_annotated", "partition"]
