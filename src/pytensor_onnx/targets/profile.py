"""What is known of a runtime, as far as a model has to be changed for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from pytensor_onnx.targets.kernels import load_kernels
from pytensor_onnx.targets.schema import allowed_dtypes


@dataclass(frozen=True, eq=False)
class Profile:
    """A runtime as the legaliser sees it: a table of kernels and a list of traps.

    Each flag is off, or empty, where the runtime computes what NumPy computes. Those of the
    profiles that come with the package are proved against the runtime by tests.
    """

    name: str
    """What users call it."""

    kernels: str | None = None
    """File of the kernel table; without one, whatever the standard allows is taken to run."""

    max_opset: int = 26
    """Newest opset that the runtime loads."""

    max_ir_version: int = 13
    """Newest version of the file format that the runtime loads."""

    refuses_defaults: bool = False
    """A value given for an input that has a default is refused, or ignored in silence."""

    inaccurate: Mapping[str, frozenset[ir.DataType]] = field(default_factory=dict)
    """Operators to be replaced by our definition: Sigmoid is off by 1e-3 at -30, Tanh by 5 ulp."""

    computed_wider: Mapping[str, frozenset[ir.DataType]] = field(default_factory=dict)
    """Operators with a wrong kernel beside a right one in a wider dtype: Sign of a float16 NaN."""

    integer_reductions_through_double: frozenset[str] = frozenset()
    """Reductions that round integers above 2**53 and saturate where integers wrap around."""

    int64_compared_by_halves: frozenset[str] = frozenset()
    """Operators for which int64 2**31 is less than 7: equal upper halves, signed lower ones."""

    integer_pow_through_double: bool = False
    """Pow rounds integers above 2**53 and does not wrap around."""

    integer_fmod_through_double: bool = False
    """Mod with fmod=1 rounds integers above 2**53; with fmod=0 it is exact."""

    integer_range_through_double: bool = False
    """Range counts its elements in double: from 2**53 + 1 to 2**53 + 3 it gives four."""

    integer_division_by_zero_fails: bool = False
    """A single integer divided by zero in Div or Mod ends the whole run with an error."""

    integer_division_overflow_kills: bool = False
    """Div and Mod of the smallest int32 or int64 by -1 end the process (WebAssembly: Div only)."""

    reductions_ignore_nan: frozenset[str] = frozenset()
    """Reductions that skip NaN, in most places."""

    log_softmax_loses_nan: frozenset[ir.DataType] = frozenset()
    """Dtypes in which LogSoftmax of 1 and NaN is not NaN alone, but a number and NaN."""

    loses_nan: frozenset[str] = frozenset()
    """Other operators that go wrong where an element is NaN: TopK sorts badly, Unique drops it."""

    unique_of_empty_slices_kills: bool = False
    """Unique along an axis ends the process where the slices have no elements."""

    clip_ignores_nan_bounds: bool = False
    """Clip with a bound that is NaN leaves the elements as they are and not NaN."""

    refuses_zero_dim: frozenset[str] = frozenset()
    """Operators that refuse a first operand without dimensions, by the standard or on their own."""

    refuses_empty: frozenset[str] = frozenset()
    """Operators that fail where the dimension they work along has length 0."""

    refuses_empty_booleans: frozenset[str] = frozenset()
    """Operators that do so for bool only; for numbers they give the smallest or largest one."""

    empty_mean_is_zero: bool = False
    """ReduceMean over no elements gives 0 and not NaN."""

    empty_loop_forgets_shape: bool = False
    """A Loop of no steps gives scan outputs of shape (0, 0), not (0, n), if its body says no n."""

    expand_to_nothing_is_dropped: bool = False
    """The optimizer drops an Expand to a constant shape with a zero: a size of one stays one."""

    finds_window_on_short_axis: bool = False
    """Pools with a stride find one window where the padded array is a little shorter than it."""

    hangs_without_taps: bool = False
    """Conv does not return where the filters have a spatial size of zero."""

    range_indices_become_slice: bool = False
    """The optimizer makes a Slice of a Gather by a Range: no error, other ends if negative."""

    empty_products_unwritten: bool = False
    """MatMul over an inner dimension of 0 writes the zeros of the first matrix of a batch only.

    For unsigned integers it fails.
    """

    fuses_products: bool = False
    """A MatMul takes in what stands before or after it.

    A constant factor becomes a float32 attribute, which has to be finite. Where a Transpose moves
    the rows behind the batch, no rows end the process.
    """

    drops_near_identities: bool = False
    """The optimizer drops, in double, terms that float32 rounds to 0 and factors it rounds to 1.

    It does so with Add, Sub, Mul and Div after any other node.
    """

    pools_take_in_pads: bool = False
    """A MaxPool takes in a Pad of zeros before it, and pads by what is never the largest."""

    float_to_integer_saturates: bool = False
    """Cast of a float outside the range of int32 or int64 saturates, and of NaN gives 0."""

    def supports(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Tell whether an operator of the standard runs in a dtype.

        What was never probed (operators on strings, bfloat16 and the like) counts as running: a
        model must not be changed or refused on no knowledge, and the runtime has the last word.

        Parameters
        ----------
        op_type
            Name of a standard operator.
        dtype
            Dtype of its main type variable, see `pytensor_onnx.targets.main_type`.
        opset_version
            Opset of the model, from 18 on; function bodies depend on it and not on the
            operator's own version alone.
        attributes
            Attributes of the node, plain or as `onnx_ir.Attr`. Without them the answer is whether
            all variants of the operator run.

        Raises
        ------
        ValueError
            Nothing is known about the opset.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> profile = get_profile("onnxruntime")
        >>> profile.supports("Erf", ir.DataType.FLOAT, 21)
        True
        >>> profile.supports("Erf", ir.DataType.DOUBLE, 21)
        False
        >>> profile.supports("Mod", ir.DataType.DOUBLE, 21, {"fmod": 1})
        True
        """
        if self.kernels is None:
            return dtype in allowed_dtypes(op_type, opset_version)
        table = load_kernels(self.kernels)
        if not table.min_opset <= opset_version <= table.max_opset:
            raise ValueError(
                f"profile {self.name!r} knows opsets {table.min_opset} to {table.max_opset}, "
                f"not {opset_version}"
            )
        return table.supports(op_type, dtype, opset_version, attributes)
