"""ONNX backend for PyTensor: export any graph, or run it on ONNX Runtime with ``mode="ONNX"``."""

import sys
from typing import TYPE_CHECKING

from pytensor_onnx._version import __version__ as __version__
from pytensor_onnx.compat.late_sympy import import_sympy_late
from pytensor_onnx.late_names import late_names

if TYPE_CHECKING:
    from pytensor_onnx.changes import Change as Change
    from pytensor_onnx.dispatch import onnx_funcify as onnx_funcify
    from pytensor_onnx.errors import (
        ArgumentError as ArgumentError,
        InputError as InputError,
        LoweringError as LoweringError,
        MissingFolderError as MissingFolderError,
        PyTensorONNXError as PyTensorONNXError,
        RunError as RunError,
        UnsupportedOpError as UnsupportedOpError,
        UnsupportedTypeError as UnsupportedTypeError,
        VerificationError as VerificationError,
    )
    from pytensor_onnx.exporting.files.file_differences import (
        FileDifferences as FileDifferences,
        diff_onnx as diff_onnx,
    )
    from pytensor_onnx.exporting.files.file_latency import (
        Latency as Latency,
        measure_latency as measure_latency,
    )
    from pytensor_onnx.exporting.files.loading import load as load
    from pytensor_onnx.exporting.files.optimized_files import (
        optimize_onnx as optimize_onnx,
        quantize_onnx as quantize_onnx,
    )
    from pytensor_onnx.exporting.program.export import (
        compile_onnx as compile_onnx,
        export_function_onnx as export_function_onnx,
        export_onnx as export_onnx,
        export_value_and_grad as export_value_and_grad,
    )
    from pytensor_onnx.exporting.program.program import ONNXProgram as ONNXProgram
    from pytensor_onnx.exporting.program.training import (
        export_training_step as export_training_step,
    )
    from pytensor_onnx.exporting.verification.results import Verification as Verification
    from pytensor_onnx.functions.operation import operation as operation
    from pytensor_onnx.functions.registry import define as define
    from pytensor_onnx.importing.registry.imported_graph import (
        ImportedGraph as ImportedGraph,
        from_onnx as from_onnx,
    )
    from pytensor_onnx.rewriting import register_onnx as register_onnx
    from pytensor_onnx.running.explanation import Explanation as Explanation, PartTime as PartTime
    from pytensor_onnx.running.linker import ONNXLinker as ONNXLinker
    from pytensor_onnx.running.session import SessionOptions as SessionOptions

__getattr__, __all__ = late_names(__name__, __file__)
__all__ += ["__version__"]

import_sympy_late()


def _is_command_line() -> bool:
    """Return whether the process runs a module of the package, which imports mode ONNX itself."""
    # While Python looks for the module of -m, this stands for its name in the arguments.
    module = sys.orig_argv[-len(sys.argv)] if sys.argv[:1] == ["-m"] else ""
    return "pytensor_onnx_command" in sys.modules or module.split(".")[0] == __name__


if not _is_command_line():
    from pytensor_onnx import registered_mode as _mode  # noqa: F401


def __dir__() -> list[str]:
    return __all__
