"""ONNX backend for PyTensor: export any graph, or run it on ONNX Runtime with ``mode="ONNX"``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytensor_onnx._deferred_sympy import defer_sympy
from pytensor_onnx._version import __version__

defer_sympy()
from pytensor_onnx.ml import rewrites as _rewrites_of_layers  # noqa: E402, F401  (registers them)
from pytensor_onnx.running.linker import ONNXLinker  # noqa: E402  (may import onnx_ir)

if TYPE_CHECKING:
    from pytensor_onnx.changes import Change
    from pytensor_onnx.dispatch import onnx_funcify
    from pytensor_onnx.errors import (
        ArgumentError,
        InputError,
        LoweringError,
        MissingFolderError,
        PyTensorONNXError,
        RunError,
        UnsupportedOpError,
        UnsupportedTypeError,
        VerificationError,
    )
    from pytensor_onnx.exporting.files.loading import load
    from pytensor_onnx.exporting.files.quantization import quantize_onnx
    from pytensor_onnx.exporting.program.export import (
        compile_onnx,
        export_function_onnx,
        export_onnx,
        export_value_and_grad,
    )
    from pytensor_onnx.exporting.program.program import ONNXProgram
    from pytensor_onnx.exporting.program.training import export_training_step
    from pytensor_onnx.exporting.verification.results import Verification
    from pytensor_onnx.functions.registry import define
    from pytensor_onnx.rewriting import register_onnx
    from pytensor_onnx.running.session import SessionOptions

_MODULES = {
    "onnx_funcify": "dispatch",
    "Change": "changes",
    "Verification": "exporting.verification.results",
    "ArgumentError": "errors",
    "InputError": "errors",
    "LoweringError": "errors",
    "MissingFolderError": "errors",
    "PyTensorONNXError": "errors",
    "RunError": "errors",
    "UnsupportedOpError": "errors",
    "UnsupportedTypeError": "errors",
    "VerificationError": "errors",
    "compile_onnx": "exporting.program.export",
    "export_function_onnx": "exporting.program.export",
    "export_onnx": "exporting.program.export",
    "export_value_and_grad": "exporting.program.export",
    "load": "exporting.files.loading",
    "quantize_onnx": "exporting.files.quantization",
    "define": "functions.registry",
    "ONNXProgram": "exporting.program.program",
    "register_onnx": "rewriting",
    "SessionOptions": "running.session",
    "export_training_step": "exporting.program.training",
}

__all__ = [
    "ArgumentError",
    "Change",
    "InputError",
    "LoweringError",
    "MissingFolderError",
    "ONNXLinker",
    "ONNXProgram",
    "PyTensorONNXError",
    "RunError",
    "SessionOptions",
    "UnsupportedOpError",
    "UnsupportedTypeError",
    "Verification",
    "VerificationError",
    "__version__",
    "compile_onnx",
    "define",
    "export_function_onnx",
    "export_onnx",
    "export_training_step",
    "export_value_and_grad",
    "load",
    "onnx_funcify",
    "quantize_onnx",
    "register_onnx",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
