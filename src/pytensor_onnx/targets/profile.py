"""The properties of a runtime that a model depends on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from pytensor_onnx.targets.kernel_tables import load_kernels

COARSE = 100
"""Error of an operator in units in the last place that is more than rounding."""

COARSE_ABSOLUTE = 1e-5
"""The same relative to one or the result, for activations of networks."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Properties of a runtime, for the passes and the exporter."""

    name: str
    """Name of the target."""

    kernels: str
    """File of the kernel table."""

    others: tuple[str, ...] = ()
    """Files of kernel tables of further runtimes, whose operators have to be accurate, too: those
    that the target means, and ONNX Runtime, which verifies files."""

    refuses_defaults: bool = False
    """A value given for an input that has a default is refused, or ignored in silence."""

    is_portable: bool = False
    """Files are for runtimes of any maker: see `docs/reference/targets.md`."""

    splits_words: bool = False
    """States of generators are numbers of 16 bits, for runtimes that lack integers of 64 bits."""

    folds_constants: bool = False
    """Functions are written out, and constants computed at export: the optimizer fails at some."""

    way_out: str = ""
    """Advice to users whose graph needs operators that the runtime lacks."""

    why_no_draws: str = ""
    """Reason why files do not draw random numbers; empty if they do."""

    avoided: frozenset[str] = frozenset()
    """Operators that are replaced although the kernel table has them."""

    merges_short_images: bool = False
    """Convolutions of short images are faster for all images of a batch at once."""

    accelerator: str | None = None
    """File of the kernel table of an accelerator; the processor runs all other operators."""

    precision: str | None = None
    """Widest dtype of floats in a model, unless its export asks for another."""

    advice: str = ""
    """Advice on the runtime, which the changes of a program have."""

    latest_opset: int = 23
    """Opset whose operators the runtime is fastest with."""

    @property
    def max_opset(self) -> int:
        """The last opset that the runtime knows."""
        return load_kernels(self.kernels).max_opset

    @property
    def has_scan(self) -> bool:
        """Whether the runtime has a right Scan."""
        table = load_kernels(self.kernels)
        return table.supports("Scan", ir.DataType.FLOAT, table.max_opset)

    def supports(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Return whether an operator of the standard runs in a dtype.

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
        if op_type in self.avoided:
            return False
        return self._has_kernel(self.kernels, op_type, dtype, opset_version, attributes)

    def is_wrong(self, op_type: str, dtype: ir.DataType, opset_version: int) -> bool:
        """Return whether the runtime runs an operator in a dtype, with other results.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> get_profile("openvino").is_wrong("Mul", ir.DataType.DOUBLE, 21)
        True
        """
        row = load_kernels(self.kernels).wrong.get(op_type)
        return row is not None and dtype in row.at(opset_version)

    def is_coarse(self, op_type: str, dtype: ir.DataType, *, absolute: bool = False) -> bool:
        """Return whether an elementwise operator loses digits somewhere in its domain.

        Parameters
        ----------
        op_type, dtype
            The operator and its dtype.
        absolute
            Whether small results may lose theirs, as activations of networks do.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> portable = get_profile("portable")
        >>> portable.is_coarse("Sigmoid", ir.DataType.DOUBLE)
        True
        >>> portable.is_coarse("Sigmoid", ir.DataType.FLOAT, absolute=True)
        False
        >>> portable.is_coarse("Exp", ir.DataType.DOUBLE)
        False
        """
        for file in (self.kernels, *self.others):
            ulps, of_one = load_kernels(file).accuracy.get(op_type, {}).get(dtype, (0.0, 0.0))
            if (of_one > COARSE_ABSOLUTE) if absolute else (ulps > COARSE):
                return True
        return False

    def accelerates(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Return whether an operator runs on the accelerator, with the arguments of `supports`.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> get_profile("webgpu").accelerates("MatMul", ir.DataType.FLOAT, 21)
        True
        >>> get_profile("webgpu").accelerates("Loop", ir.DataType.FLOAT, 21)
        False
        """
        if self.accelerator is None:
            return False
        return self._has_kernel(self.accelerator, op_type, dtype, opset_version, attributes)

    def _has_kernel(
        self,
        file: str,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None,
    ) -> bool:
        table = load_kernels(file)
        if not table.min_opset <= opset_version <= table.max_opset:
            raise ValueError(
                f"profile {self.name!r} knows opsets {table.min_opset} to {table.max_opset}, "
                f"not {opset_version}"
            )
        return table.supports(op_type, dtype, opset_version, attributes)
