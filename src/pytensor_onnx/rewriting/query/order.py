"""The order in which the rewrites of this package run, between PyTensor's rewrites.

`WHOLE_GRAPH` lists passes over a graph, each group before a pass of PyTensor. `NODES` lists
rewrites of single nodes, which are repeated with PyTensor's own of the same stage.
"""

from collections.abc import Sequence

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter
from pytensor.graph.rewriting.db import RewriteDatabase
from pytensor.scan.rewriting import scan_remove_unused
from pytensor.tensor.rewriting.basic import constant_folding

from pytensor_onnx.compat.pytensor import check, position_before
from pytensor_onnx.named_dims import lower_named
from pytensor_onnx.ops.networks.recurrent_ops import RecurrentOp
from pytensor_onnx.rewriting.elementwise.canonical_forms import (
    canonize_product,
    canonize_sum,
    distribute_factors,
    drop_two_signs,
    fit_numbers,
    multiply_sigmoids,
)
from pytensor_onnx.rewriting.elementwise.choices import compute_before_choice
from pytensor_onnx.rewriting.elementwise.formulas import remember_formulas, share_partial_sums
from pytensor_onnx.rewriting.elementwise.number_widths import (
    narrow_arithmetic,
    widen_numbers,
    widen_operands,
)
from pytensor_onnx.rewriting.engine.batches import batch_by_axes
from pytensor_onnx.rewriting.engine.predicates import (
    GUARDED,
    are_constants,
    replace_by_guarded,
    rewrites_of,
)
from pytensor_onnx.rewriting.engine.walkers import Visit, WithOps, keep_origins
from pytensor_onnx.rewriting.indexing.index_forms import (
    index_by_batch,
    index_joined_from_start,
    join_increments,
    repeat_by_an_axis,
    slice_before_masking,
    write_over_all,
)
from pytensor_onnx.rewriting.linalg.matrix_forms import (
    invert_as_matrix,
    solve_as_matrix,
    solve_riccati,
)
from pytensor_onnx.rewriting.linalg.small_matrices import write_out_small
from pytensor_onnx.rewriting.loops.early_parts import draw_before_loop, multiply_before_loop
from pytensor_onnx.rewriting.loops.inner_loops import check_inner_loops, merge_equal_operations
from pytensor_onnx.rewriting.loops.loop_lengths import check_lengths, drop_known_checks
from pytensor_onnx.rewriting.loops.nested_loops import batch_inner_loops
from pytensor_onnx.rewriting.loops.scan_outputs import (
    reduce_steps,
    reduce_trace,
    shorten_buffer,
    slice_within_steps,
)
from pytensor_onnx.rewriting.loops.scan_to_map import batch_scan
from pytensor_onnx.rewriting.loops.step_lookups import check_read_step, search_in_graph
from pytensor_onnx.rewriting.networks import (
    infer_sizes,
    infer_unread,
    loop_over_layers,
    mask_before_routing,
)
from pytensor_onnx.rewriting.products import (
    drop_empty_product,
    inline_products,
    sum_batched_product,
)
from pytensor_onnx.rewriting.query import registration
from pytensor_onnx.rewriting.query.encode_values import encode_values
from pytensor_onnx.rewriting.query.registration import (
    INCOMPATIBLE,
    LAYERS,
    OPEN_OPERATORS,
    SPECIALIZE,
    correct_types,
)
from pytensor_onnx.rewriting.reductions import widen_cumulative
from pytensor_onnx.rewriting.shape import (
    add_leading_axes_last,
    cast_one_size,
    choose_sizes_in_pairs,
    divide_sizes,
    forget_sizes_beside_zero,
    multiply_sizes,
    read_before_replacing,
    read_one_size,
)
from pytensor_onnx.rewriting.signal import convolve_fully, transform_real, transform_to_real
from pytensor_onnx.rewriting.special import (
    derive_betainc,
    multiply_all_bessel_last,
    multiply_bessel_last,
)
from pytensor_onnx.rules import rewrites_graphs

lower_named_dims = rewrites_graphs(
    family="structure",
    purpose="conversion",
    identity="f(x with named axes) = f(x) with the axes in order",
    begins_at=("Ops of pytensor.xtensor",),
)(lower_named)

WHOLE_GRAPH: dict[str, dict[str, GraphRewriter | RewriteDatabase]] = {
    # Before layers are inlined: features of the graph, encoded values, then layers by their names.
    "inline_ofg_expansion": {
        "infer_sizes": infer_sizes,
        "correct_types": correct_types,
        "forget_sizes_beside_zero": forget_sizes_beside_zero,
        # Before `keep_origins`, which would copy the name of an operand to its Cast.
        "widen_cumulative": widen_cumulative,
        "keep_origins": keep_origins,
        # Before all rewrites that look at Ops on tensors.
        "lower_named_dims": lower_named_dims,
        "optimizers": search_in_graph,
        "encode_values": encode_values,
        "fourier_transforms": Visit(transform_real, transform_to_real),
        "convolutions": Visit(convolve_fully),
        "layers": LAYERS,
        "loop_over_layers": WithOps(loop_over_layers, RecurrentOp),
        "beta_gradients": Visit(derive_betainc),
        "bessel_products": multiply_all_bessel_last,
        "riccati_equations": Visit(solve_riccati),
    },
    # Before all rewrites that look at slices and dtypes.
    "merge1": {
        "slice_before_masking": Visit(slice_before_masking),
        "index_joined_from_start": Visit(index_joined_from_start),
        "widen_numbers": widen_numbers,
        "widen_operands": Visit(widen_operands),
        "fit_numbers": fit_numbers,
    },
    "pre_local_IncSubtensor_serialize": {"join_increments": Visit(join_increments)},
    "canonicalize": {"multiply_matrices": Visit(registration.multiply_matrices, once=True)},
    # Before constants are pushed out of loops. Loops before their gradients, which share checks.
    "scan_eqopt1": {
        "check_inner_loops": Visit(check_inner_loops, order="in_to_out", once=True),
        "check_read_steps": Visit(check_read_step, order="in_to_out", once=True),
        "check_lengths": Visit(check_lengths, order="in_to_out", once=True),
        "batch_inner_loops": Visit(batch_inner_loops, order="in_to_out", once=True),
    },
    # Once before and once after the canonical form.
    "ShapeOpt": {"structured_products": registration.multiply_by_structure},
    "stabilize": {"structured_products_again": registration.multiply_by_structure.again()},
    # In place of PyTensor's own reductions of steps and traces; then the removal of loops.
    "scan_sit_sot_to_untraced": {
        "reduce_steps": Visit(reduce_steps, once=True),
        "reduce_trace": Visit(reduce_trace, once=True),
        "shorten_buffers": Visit(shorten_buffer, once=True),
    },
    "reassociate_matmul_chain": {
        # First, as the others move operations out of the steps.
        "merge_equal_in_loops": Visit(merge_equal_operations, once=True),
        # Before loops are removed, as those that are left may be maps or recurrences.
        "draw_before_loops": Visit(draw_before_loop),
        "batch_scans": Visit(batch_scan, once=True),
        "multiply_before_loops": Visit(multiply_before_loop, once=True),
        "remove_unused_of_scan": Visit(scan_remove_unused, once=True),
    },
    # Before nested sums are flattened, which would part shared ones.
    "add_mul_fusion": {"share_partial_sums": share_partial_sums},
    "local_useless_unbatched_blockwise": {
        "drop_batches": Visit(registration.drop_batches, once=True),
        "mask_before_routing": Visit(mask_before_routing, once=True),
    },
    "ifelse_simplify": {
        "specialize": SPECIALIZE,
        # Folds numbers that were cast or expanded to fit their operands.
        "constant_folding": Visit(constant_folding, order="in_to_out", where=are_constants),
    },
}
"""Graph rewrites, grouped by the pass of PyTensor before which they run."""

NODES: dict[str, Sequence[NodeRewriter]] = {
    # Before negations become products, and constants are folded.
    "useless": [registration.minimum_of_integers, registration.zero_quotient],
    "canonicalize": [
        # Again, for the steps of loops.
        multiply_bessel_last,
        canonize_sum,
        canonize_product,
        distribute_factors,
        join_increments,
        narrow_arithmetic,
        divide_sizes,
        repeat_by_an_axis,
        write_over_all,
        batch_by_axes,
        slice_within_steps,
        drop_known_checks,
        cast_one_size,
        invert_as_matrix,
        solve_as_matrix,
        registration.drop_symmetric_transpose,
    ],
    "stabilize": [
        registration.drop_symmetric_transpose,
        write_over_all,
        drop_two_signs,
        distribute_factors,
        multiply_sigmoids,
    ],
    "specialize": [
        registration.drop_symmetric_transpose,
        write_over_all,
        # After PyTensor's rewrites of Einsum, which find a better order if sizes are known.
        inline_products,
        sum_batched_product,
        # Here, as the axes and shapes that it adds are simplified in the same stage.
        index_by_batch,
        # Again, for the batches made of loops.
        batch_by_axes,
        *registration.take_diagonals,
    ],
    "onnx_specialize": [
        drop_empty_product,
        infer_unread,
        choose_sizes_in_pairs,
        add_leading_axes_last,
        read_one_size,
        read_before_replacing,
        multiply_sizes,
        # Again: products of vectors of sizes are written out only here.
        divide_sizes,
        compute_before_choice,
        # Last, since other rewrites recognise solves and factorisations.
        write_out_small,
    ],
}
"""Node rewrites by stage."""

FOLDED = ("canonicalize", "stabilize", "specialize", "uncanonicalize")
"""Stages after each of whose rounds constants are folded."""


def register() -> None:
    """Register all rewrites with PyTensor's database, under the tag ``onnx``."""
    excluded = (name for name in INCOMPATIBLE if name not in (GUARDED, OPEN_OPERATORS))
    check(WHOLE_GRAPH, excluded, (str(guard.rewrite) for guard in registration.GUARDS))
    spans = {anchor: position_before(anchor) for anchor in WHOLE_GRAPH}
    for anchor, passes in WHOLE_GRAPH.items():
        start, end = spans[anchor]
        for i, (name, rewriter) in enumerate(passes.items(), start=1):
            position = start + (end - start) * i / (len(passes) + 1)
            optdb.register(f"onnx_{name}", rewriter, "onnx", position=position)
    for guard in registration.GUARDS:
        replace_by_guarded(guard)
    for stage, rewrites in NODES.items():
        for rewrite in rewrites:
            rewrites_of(stage).register(rewrite.__name__, rewrite, "onnx", use_db_name_as_tag=False)
    remember_formulas()
    fold = Visit(constant_folding, order="in_to_out", once=True, where=are_constants)
    for stage in FOLDED:
        rewrites_of(stage).register("onnx_fold", fold, "onnx", final_rewriter=True)


register()
