"""Lowerings of Ops that few graphs have: a module is imported when a graph has one of its Ops."""

import threading
from collections.abc import Callable
from importlib import import_module

import onnx_ir as ir
from pytensor.compile.ops import FromFunctionOp
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.loop import ScalarLoop
from pytensor.scan.op import Scan
from pytensor.tensor import basic, extra_ops
from pytensor.tensor.optimize import ScipyWrapperOp
from pytensor.tensor.pad import Pad
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

from pytensor_onnx.dispatch.basic import Lowered, onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops import (
    complex_numbers,
    encoded,
    loop_checks,
    matrix_parts,
    pivots,
    sparse_matrices,
)
from pytensor_onnx.ops.choices import ChooseFrom
from pytensor_onnx.ops.draws import Draw
from pytensor_onnx.ops.fourier import StandardTransform
from pytensor_onnx.ops.linear_recurrence import LinearRecurrence
from pytensor_onnx.ops.networks.base import NetworkOp
from pytensor_onnx.ops.networks.detection import NonMaxSuppression
from pytensor_onnx.ops.running_extremes import RunningExtreme
from pytensor_onnx.ops.triangles import Triangle

LATE: dict[str, tuple[type[Op], ...]] = {
    "advanced_inc_subtensor": (AdvancedIncSubtensor,),
    "advanced_subtensor": (AdvancedSubtensor,),
    "complex_numbers": (
        complex_numbers.PartDifference,
        complex_numbers.PartSum,
        complex_numbers.ProductImag,
        complex_numbers.ProductReal,
    ),
    "conditional": (IfElse, LazyIfElse),
    "cumulative": (extra_ops.CumOp, RunningExtreme),
    "diagonal": (
        basic.AllocDiag,
        basic.ExtractDiag,
        basic.Eye,
        extra_ops.FillDiagonal,
        extra_ops.FillDiagonalOffset,
    ),
    "encoded": (encoded.Decode, encoded.Encode),
    "extra_ops": (
        extra_ops.Bartlett,
        extra_ops.CpuContiguous,
        extra_ops.Repeat,
        extra_ops.Unique,
    ),
    "fourier": (StandardTransform,),
    "linear_recurrence": (LinearRecurrence,),
    "loop_checks": (loop_checks.FirstRows, loop_checks.StepCount, loop_checks.StepIndex),
    "matrix_parts": (matrix_parts.Elements, matrix_parts.Window),
    "multi_index": (extra_ops.RavelMultiIndex, extra_ops.UnravelIndex),
    "networks": (NetworkOp, NonMaxSuppression),
    "nonzero": (basic.Nonzero,),
    "pad": (Pad,),
    "pivots": (pivots.NextPivot, pivots.PivotPosition),
    "random": (Draw, RandomVariable),
    "refused": (FromFunctionOp, ScipyWrapperOp),
    "scalar_loop": (ScalarLoop,),
    "scan": (Scan,),
    "search": (extra_ops.SearchsortedOp,),
    "selection": (ChooseFrom, basic.PermuteRowElements),
    "sort": (ArgSortOp, SortOp),
    "sparse_matrices": (
        sparse_matrices.EntryRows,
        sparse_matrices.RowProducts,
        sparse_matrices.ScaledRowSums,
        sparse_matrices.SegmentSum,
        sparse_matrices.Take,
    ),
    "triangles": (Triangle,),
}
"""Modules of this package, with the classes of Ops that they register lowerings for."""

_loading = threading.RLock()
_stand_ins: set[Callable] = set()
_own: dict[type, Callable] = {}


def import_lowerings(*modules: str) -> None:
    """Import modules of `LATE`, whose lowerings replace no lowerings of users."""
    with _loading:
        before = dict(onnx_funcify.registry)
        for module in modules:
            import_module(f"{__package__}.{module}")
        for op_type, lowering in onnx_funcify.registry.items():
            if before.get(op_type) is not lowering:
                _own[op_type] = lowering
        for op_type, lowering in before.items():
            if lowering not in _stand_ins and onnx_funcify.registry[op_type] is not lowering:
                onnx_funcify.register(op_type, lowering)


def _register(module: str, op_types: tuple[type[Op], ...]) -> None:
    """Register a lowering that imports the module with the Ops' own, and calls that."""

    def import_and_lower(op: Op, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
        import_lowerings(module)
        # A user's lowering may call this one for some cases, so that the dispatch returns here.
        own = next(_own[kind] for kind in type(op).__mro__ if kind in _own)
        result: Lowered = own(op, node, build, *inputs)
        return result

    _stand_ins.add(import_and_lower)
    for op_type in op_types:
        onnx_funcify.register(op_type, import_and_lower)


for _module, _op_types in LATE.items():
    _register(_module, _op_types)
