"""HLO syntax that the parser ignores, and why. Syntax in none of these tables is refused."""

from __future__ import annotations

MODULE = {
    "alias_passthrough_params": "says how memory may be reused",
    "allow_spmd_sharding_propagation_to_output": "guides XLA's partitioner",
    "allow_spmd_sharding_propagation_to_parameters": "guides XLA's partitioner",
    "buffer_donor": "says how memory may be reused",
    "entry_computation_root_parameter_aliasing": "says how memory may be reused",
    "frontend_attributes": "is the framework's own, but for Shardy's meshes",
    "origin_recovery_table": "is for debugging",
}
"""Attributes of a module."""

COMPUTATION = {
    "execution_thread": "says which thread of XLA's runs it",
}
"""Attributes of a computation."""

INSTRUCTION = {
    "algorithm": "says how the factors of a product may be rounded; they are not",
    "backend_config": "is how one compiler chose to run it; CustomCall keeps it",
    "control-predecessors": "what has side effects runs in the order of the text",
    "frontend_attributes": "is the framework's own; Call keeps it, and Shardy's are shardings",
    "inferred_dimension": "says which size of a dynamic array follows from the others",
    "origin": "is for debugging",
    "original_value": "is for debugging",
    "output_to_operand_aliasing": "says how memory may be reused; CustomCall keeps it",
    "parameter_replication": "guides XLA's partitioner",
    "physical_to_logical": "says how memory is laid out",
    "statistics": "is for showing the graph",
}
"""Attributes of an instruction, where its op has none of the name; ``metadata`` becomes its source.
"""
