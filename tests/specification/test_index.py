"""An index of the worked examples on the specification's pages: none is without its test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

# What the pages show, under the names of their sections, and the tests that run it. A page that
# has several editions shows most of its examples in each.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "AllGather: [1.0, 2.5] and [3.0, 5.25]": ("test_replicas::test_all_gather",),
    "AllGather: {0, 2}, {1, 3}": (
        "test_replicas::test_all_gather_between_replicas_0_and_2_and_1_and_3",
    ),
    "AllReduce: [4.0, 7.75]": ("test_replicas::test_all_reduce",),
    "AllToAll: groups {1,2,3} and {4,5,0}": (
        "test_replicas::test_all_to_all_in_the_order_of_the_groups",
    ),
    "AllToAll 1: f32[4,16] becomes f32[16,4]": ("test_replicas::test_all_to_all_example_1",),
    "AllToAll 2: f32[2,4] becomes f32[4,2]": ("test_replicas::test_all_to_all_example_2",),
    "BatchNormGrad: its formulas": (
        "test_operations_control::test_batch_norm_grad_is_its_formulas",
    ),
    "BatchNormInference: given mean and variance": (
        "test_operations_control::test_batch_norm_inference_takes_mean_and_variance",
    ),
    "BatchNormTraining: its formulas": (
        "test_operations_control::test_batch_norm_training_is_its_formulas",
    ),
    "BitcastConvertType: f32[10] and f16[10,2], f32[] and f16[2], s32 and s8": (
        "test_operations_elementwise::"
        "test_bitcast_convert_changes_the_last_dimension_with_the_width",
    ),
    "Broadcast: 2.0f to f32[2,3]": (
        "test_operations_shape::test_broadcast_adds_dimensions_on_the_left",
    ),
    "Clamp: {-1, 5, 9} between 0 and 6": (
        "test_operations_elementwise::test_clamp_between_scalars",
    ),
    "Collapse: {0,1,2}, {0,1}, {1,2}": (
        "test_operations_shape::test_collapse_to_one_dimension",
        "test_operations_shape::test_collapse_the_two_lower_dimensions",
        "test_operations_shape::test_collapse_the_two_higher_dimensions",
    ),
    "Collapse: {1,0} and {0,2} are none": (
        "test_operations_shape::test_collapse_takes_consecutive_dimensions_in_order",
    ),
    "Compare: total order": ("test_operations_elementwise::test_total_order_of_floating_point",),
    "CompositeCall: foo.bar": (
        "test_operations_effects::test_composite_call_is_its_decomposition",
        "test_operations_effects::test_composite_call_is_written_as_a_call_with_attributes",
    ),
    "Concatenate: one dimension, two dimensions": (
        "test_operations_shape::test_concatenate_vectors",
        "test_operations_shape::test_concatenate_matrices",
    ),
    "Conv: pseudocode, padding (2,3)": (
        "test_operations_contraction::test_convolution_is_the_pages_pseudocode",
    ),
    "Conv: groups, depthwise": (
        "test_operations_contraction::test_feature_groups_are_separate_convolutions",
        "test_operations_contraction::test_batch_groups_pair_with_output_features",
    ),
    "Conv: dilation, reversal": (
        "test_operations_contraction::test_dilation_puts_holes_between_elements",
        "test_operations_contraction::test_window_reversal_turns_the_kernel_round",
    ),
    "ConvertElementType: s32 to f32": (
        "test_operations_elementwise::test_convert_integers_to_floating_point",
    ),
    "CustomCall: myfunc": ("test_operations_effects::test_custom_call_calls_the_users_function",),
    "Dot: vectors, matrix and vector, matrices": (
        "test_operations_contraction::test_dot_of_vectors_and_matrices",
    ),
    "DotGeneral: contracting dimensions, batch dimensions": (
        "test_operations_contraction::test_dot_general_contracts_named_dimensions",
        "test_operations_contraction::test_dot_general_runs_batches_in_step",
        "test_operations_contraction::test_dot_general_of_batches_of_matrices",
    ),
    "DynamicSlice: one dimension, two dimensions": (
        "test_operations_shape::test_dynamic_slice_of_a_vector",
        "test_operations_shape::test_dynamic_slice_of_a_matrix",
    ),
    "DynamicUpdateSlice: one dimension, two dimensions": (
        "test_operations_shape::test_dynamic_update_slice_of_a_vector",
        "test_operations_shape::test_dynamic_update_slice_of_a_matrix",
    ),
    "Fft: RFFT of lengths 16 and 17": ("test_linalg::test_rfft_of_two_lengths_has_one_shape",),
    "Fft: a cascade over several axes": ("test_linalg::test_fft_of_several_axes_is_a_cascade",),
    "Gather: [8,6] out of [16,11], at [5,2] and at [4,5,2]": (
        "test_operations_indexing::test_gather_five_slices_of_a_matrix",
        "test_operations_indexing::test_gather_along_two_batch_dimensions",
    ),
    "Gather: gather_nd": ("test_operations_indexing::test_gather_nd_takes_whole_rows",),
    "Gather: [6,7] is [6,7,1]": ("test_operations_indexing::test_gather_by_single_numbers",),
    "Gather: {0→1, 1→3, 2→4, 3→5}": (
        "test_operations_indexing::test_gather_remaps_offsets_past_collapsed_dimensions",
    ),
    "GetTupleElement and Tuple: (f32[10], s32)": (
        "test_operations_shape::test_tuples_are_made_and_taken_apart",
    ),
    "Infeed: two loops": ("test_operations_effects::test_infeeds_of_two_loops_are_in_order",),
    "Iota: s32[4,8] along 0 and 1": ("test_operations_shape::test_iota",),
    "Map: three operands and a parameter": (
        "test_operations_reduction::test_map_applies_a_function_of_scalars",
    ),
    "Pad: edges, interior, nothing": (
        "test_operations_shape::test_pad_adds_around_and_between",
        "test_operations_shape::test_pad_removes_after_padding_between",
        "test_operations_shape::test_pad_by_nothing_changes_nothing",
    ),
    "CollectivePermute, CollectiveBroadcast: zeros where nothing arrives": (
        "test_replicas::test_collective_permute",
        "test_replicas::test_collective_broadcast",
    ),
    "RaggedAllToAll: a ragged tensor of three rows, two replicas": (
        "test_replicas::test_ragged_tensor",
        "test_replicas::test_ragged_all_to_all",
    ),
    "Reduce: [10, 11, 12, 13]": ("test_operations_reduction::test_reduce_a_vector",),
    "Reduce: the matrix": (
        "test_operations_reduction::test_reduce_a_matrix_along_either_dimension",
    ),
    "Reduce: the cuboid, 84": ("test_operations_reduction::test_reduce_a_cuboid",),
    "Reduce: maximum and its index": (
        "test_operations_reduction::test_reduce_to_a_maximum_and_its_index",
    ),
    "ReducePrecision: IEEE half precision": (
        "test_operations_elementwise::test_reduce_precision_to_half_and_back",
    ),
    "ReduceScatter: [4.0] and [7.5], f32[2,4] to f32[2,2], global identifiers": (
        "test_replicas::test_reduce_scatter",
        "test_replicas::test_reduce_scatter_example_1",
        "test_replicas::test_global_device_ids",
    ),
    "Send, Recv: contexts": ("test_replicas::test_contexts_of_send_and_recv",),
    "ReduceWindow 1: blocks of 2 x 3": ("test_operations_reduction::test_reduce_window_by_blocks",),
    "ReduceWindow: [100, 1] and [1000, 10, 1]": (
        "test_operations_reduction::test_reduce_window_without_padding_and_with",
    ),
    "ReduceWindow 2: [[0,0],[3,4]]": (
        "test_operations_reduction::test_reduce_window_with_dilations",
    ),
    "Reshape: {24}, {8,3}": ("test_operations_shape::test_reshape_to_a_vector_and_to_a_matrix",),
    "Reshape: f32[1,1] and a scalar": (
        "test_operations_shape::test_reshape_between_one_element_and_a_scalar",
    ),
    "Reshape: explicit shape": ("test_operations_shape::test_reshape_to_an_explicit_shape",),
    "Rev: i becomes N - 1 - i": ("test_operations_shape::test_rev_turns_indices_round",),
    "RngBitGenerator: its algorithms": (
        "test_operations_effects::test_random_bits_are_a_function_of_the_state",
    ),
    "Scan: three steps": ("test_scanning::test_example_of_three_steps",),
    "Scatter: s32[2,3,4,2]": ("test_operations_indexing::test_scatter_windows_into_a_batch",),
    "Select: an array, a scalar": (
        "test_operations_elementwise::test_select_by_an_array",
        "test_operations_elementwise::test_select_by_a_scalar",
    ),
    "SelectAndScatter: 8 is 2 + 6": (
        "test_operations_reduction::test_select_and_scatter_adds_what_meets_at_one_place",
    ),
    "SetDimensionSize: sums of five and six, product of five": (
        "test_operations_effects::test_set_dimension_size_leaves_out_what_is_beyond",
    ),
    "Sign: its cases": ("test_operations_elementwise::test_sign_keeps_zeros_and_nan",),
    "Slice: one dimension, two dimensions": (
        "test_operations_shape::test_slice_of_a_vector",
        "test_operations_shape::test_slice_of_a_matrix",
    ),
    "Sort: three operands": (
        "test_operations_reduction::test_sort_orders_all_operands_by_the_comparator",
    ),
    "TopK: shapes, equal elements": (
        "test_operations_reduction::test_top_k_of_a_vector_prefers_lower_indices",
        "test_operations_reduction::test_top_k_runs_along_the_last_dimension",
    ),
    "Transpose: sizes": ("test_operations_shape::test_transpose_permutes_dimensions",),
    "TriangularSolve, Cholesky: what they solve": (
        "test_linalg::test_triangular_solve_solves",
        "test_linalg::test_cholesky_multiplies_back",
    ),
    "While: a thousand steps": ("test_operations_control::test_while_counts_to_a_thousand",),
}

BROADCASTING: dict[str, tuple[str, ...]] = {
    "|1 2 3| |4 5 6| + |7 8 9|": ("test_broadcasting::test_a_vector_is_added_to_every_row",),
    "|1 2 3| |4 5 6| + 7": ("test_broadcasting::test_a_scalar_meets_every_element",),
    "different ranks need their dimensions named": (
        "test_broadcasting::test_a_vector_needs_its_dimension_named",
    ),
    "|7 8 9| along 1, along 0": (
        "test_broadcasting::test_a_vector_along_either_dimension_of_a_square",
    ),
    "a 3x4 matrix in a 2x3x4 cuboid": (
        "test_broadcasting::test_a_matrix_matches_two_dimensions_of_a_cuboid",
    ),
    "T in MxNxPxQ": ("test_broadcasting::test_a_vector_matches_any_dimension",),
    "TxV in MxNxPxQ": ("test_broadcasting::test_a_matrix_matches_a_pair_of_dimensions",),
    "V to N and T to P, or both to one": (
        "test_broadcasting::test_broadcast_dimensions_increase_strictly",
    ),
    "(2,1) and (2,3); (1,2,5) and (7,2,5); (7,2,5) and (7,1,5); (2,1) and (1,3)": (
        "test_broadcasting::test_degenerate_dimensions_stretch",
    ),
    "(7,2,5) and (7,2,6)": ("test_broadcasting::test_other_sizes_are_incompatible",),
    "|1 2 3 4| + [5 6]": ("test_broadcasting::test_both_compose_for_a_vector_and_a_row",),
    "1x2 and 4x3x1": ("test_broadcasting::test_both_compose_for_a_row_and_a_cuboid",),
}

LAYOUTS: dict[str, tuple[str, ...]] = {
    "[A x B x C] by number": ("test_shapes_and_layout::test_dimensions_are_listed_by_number",),
    "-1 has the size C, -2 the size B": (
        "test_shapes_and_layout::test_negative_dimension_numbers_count_from_the_back",
    ),
    "a d b e c f": ("test_shapes_and_layout::test_column_major_lies_column_by_column",),
    "a b c d e f": ("test_shapes_and_layout::test_row_major_lies_row_by_row",),
    "the default order": ("test_shapes_and_layout::test_the_default_is_row_major",),
    "a d 0 b e 0 c f 0 0 0 0 0 0 0": (
        "test_shapes_and_layout::test_padding_widens_each_dimension",
    ),
    "indices of both kinds": (
        "test_shapes_and_layout::test_indices_of_one_kind_and_the_other_match",
    ),
}

CUSTOM_OPERATIONS: dict[str, tuple[str, ...]] = {
    "ZeroOut: int32": (
        "test_custom_operations::test_zero_out_of_int32",
        "test_custom_operations::test_shape_function_says_the_shape",
        "test_custom_operations::test_kernel_class_with_a_context",
    ),
    "load_op_library: [[1, 0], [0, 0]]": ("test_custom_operations::test_op_library_is_loaded",),
    "kernels on several threads": ("test_custom_operations::test_multi_threaded_kernel",),
    "Example: times two, on CPU and GPU": (
        "test_custom_operations::test_times_two_on_cpu_and_gpu",
        "test_custom_operations::test_times_two_refuses_too_many_elements",
        "test_custom_operations::test_gpu_kernel_alone_runs_nowhere",
    ),
    "ZeroOut: vectors": ("test_custom_operations::test_vectors_alone",),
    "ZeroOut: preserve_index": ("test_custom_operations::test_preserve_index",),
    "EnumExample": ("test_custom_operations_interfaces::test_choice_of_strings",),
    "RestrictedTypeExample": ("test_custom_operations_interfaces::test_choice_of_types",),
    "NumberType, NumberOrBooleanType": ("test_custom_operations_interfaces::test_number_types",),
    "MinIntExample, TypeListExample": (
        "test_custom_operations_interfaces::test_least_integers_and_lengths",
    ),
    "AttrDefaultExample, AttrConstraintAndDefaultExample": (
        "test_custom_operations_interfaces::test_defaults",
    ),
    "AttrDefaultExampleForAllTypes": (
        "test_custom_operations_interfaces::test_defaults_of_all_types",
    ),
    "ZeroOut: float and int32, double, realnumbertype": (
        "test_custom_operations::test_zero_out_of_two_types",
        "test_custom_operations::test_zero_out_of_more_types",
        "test_custom_operations::test_zero_out_of_real_numbers",
        "test_custom_operations_interfaces::test_type_attribute_with_a_default",
    ),
    "zero_out: its documentation": ("test_custom_operations::test_docstring_of_zero_out",),
    "StringToNumber": ("test_custom_operations_interfaces::test_string_to_number",),
    "PolymorphicListExample": ("test_custom_operations_interfaces::test_lists_of_any_types",),
    "ListTypeRestrictionExample, RestrictedTensorSequenceExample": (
        "test_custom_operations_interfaces::test_lists_of_some_types",
    ),
    "IntListInputExample, SameListInputExample": (
        "test_custom_operations_interfaces::test_lists_of_one_type",
    ),
    "MinLengthIntListExample, MinimumLengthPolymorphicListExample": (
        "test_custom_operations_interfaces::test_lists_of_a_least_length",
    ),
    "MultipleInsAndOuts": ("test_custom_operations_interfaces::test_several_inputs_and_outputs",),
    "BuiltInTypesExample, PolymorphicSingleInput, RestrictedPolymorphicSingleInput": (
        "test_custom_operations_interfaces::test_types_of_inputs",
    ),
    "ArbitraryTensorSequenceExample, Int32SequenceExample, SameTypeSequenceExample": (
        "test_custom_operations_interfaces::test_sequences",
    ),
    "MyGeneralUnaryOp and other compatible changes": (
        "test_custom_operations_interfaces::test_compatible_changes",
        "test_custom_operations_interfaces::test_single_inputs_become_lists",
        "test_custom_operations::test_graph_of_an_old_definition_runs_with_the_new_one",
    ),
    "Pad: paddings in the host's memory": (
        "test_custom_operations::test_pad_keeps_its_paddings_on_the_host",
    ),
    "ZeroOut: its gradient": (
        "test_custom_operations::test_gradient_of_zero_out",
        "test_custom_operations::test_gradient_of_a_batch",
    ),
    "gradients of several outputs, None, none": (
        "test_custom_operations::test_gradient_of_several_outputs_and_an_index",
        "test_custom_operations::test_without_a_gradient",
    ),
    "shape functions": (
        "test_custom_operations::test_shape_functions",
        "test_custom_operations::test_shape_function_merges_inputs",
        "test_custom_operations::test_without_a_shape_function",
    ),
    "median pooling": (
        "test_custom_operations::test_median_pooling",
        "test_custom_operations::test_median_pooling_of_existing_ops",
    ),
}

EXAMPLES = {**OPERATIONS, **BROADCASTING, **LAYOUTS, **CUSTOM_OPERATIONS}


def functions_of(module: str) -> set[str]:
    """The names of the functions in a file of this folder."""
    source = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_has_its_tests(example: str) -> None:
    for name in EXAMPLES[example]:
        module, _, test = name.partition("::")
        assert test in functions_of(module), f"{name} is gone"
