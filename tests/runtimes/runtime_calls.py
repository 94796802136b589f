"""Calls of runtimes: a file and arrays by name in, arrays by name out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

_TOLERANCES = {"float16": (1e-2, 1e-2), "float32": (1e-4, 2e-5), "float64": (1e-13, 1e-300)}
"""Relative and absolute tolerances; another order of operations adds up in the tests' models."""

Arrays = Mapping[str, np.ndarray]


def _onnxruntime(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import onnxruntime

    return onnxruntime.InferenceSession(file).run(names, dict(feed))


def _onnx(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(file).run(names, dict(feed))


def _openvino(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(file)
    names_of_inputs = [port.names for port in model.inputs]
    compiled = core.compile_model(model, "CPU")
    results = compiled([next(feed[n] for n in known if n in feed) for known in names_of_inputs])
    by_name = {name: results[port] for port in compiled.outputs for name in port.names}
    return [by_name[name] for name in names]


def _tract(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import tract

    loaded = tract.onnx().load(file)
    for k in range(loaded.output_count()):
        loaded.set_output_fact(k, None)
    arrays = [feed[loaded.input_name(k)] for k in range(loaded.input_count())]
    for k, array in enumerate(arrays):
        kind = "bool" if array.dtype == bool else f"{array.dtype.kind}{array.dtype.itemsize * 8}"
        loaded.set_input_fact(k, ",".join([*map(str, array.shape), kind]))
    results = loaded.into_model().into_runnable().run(list(arrays))
    return [result.to_numpy() for result in results]


def _cv2(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import cv2

    network = cv2.dnn.readNetFromONNX(file)
    for name, array in feed.items():
        network.setInput(np.ascontiguousarray(array), name)
    found = dict(zip(network.getUnconnectedOutLayersNames(), network.forward(names), strict=True))
    return [found[name] for name in names]


def _tinygrad(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    if shutil.which("clang") is None:
        # Its other devices need a compiler of the system.
        os.environ.setdefault("DEV", "PYTHON")
    from tinygrad import Tensor
    from tinygrad.nn.onnx import OnnxRunner

    results = OnnxRunner(file)({name: Tensor(array) for name, array in feed.items()})
    return [results[name].numpy() for name in names]


def _iree(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import iree.runtime
    import onnx
    from iree.compiler import CompilerToolError, compile_file

    lowered = f"{file}.mlir"
    tool = [sys.executable, "-m", "iree.compiler.tools.import_onnx", file, "-o", lowered]
    imported = subprocess.run(tool, capture_output=True, text=True, check=False)
    if imported.returncode:
        raise RuntimeError(imported.stderr)
    options = ["--iree-llvmcpu-target-cpu=generic"]
    try:
        compiled = compile_file(lowered, target_backends=["llvm-cpu"], extra_args=options)
    except CompilerToolError as error:
        _, _, reason = str(error).partition("error: ")
        raise RuntimeError(reason.partition("\n")[0]) from error
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, compiled))
    results = context.modules.module["main_graph"](*feed.values())
    arrays = map(np.asarray, results if isinstance(results, list | tuple) else [results])
    # Its functions return the bits of unsigned integers as signed ones.
    types = (value.type.tensor_type.elem_type for value in onnx.load(file).graph.output)
    dtypes = map(onnx.helper.tensor_dtype_to_np_dtype, types)
    return [a.view(d) if d.kind == "u" else a for a, d in zip(arrays, dtypes, strict=True)]


def _tvm(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    import onnx
    import tvm
    from tvm.relax.frontend.onnx import from_onnx

    sizes = {name: list(array.shape) for name, array in feed.items()}
    module = from_onnx(onnx.load(file), shape_dict=sizes, keep_params_in_input=False)
    machine = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    results = machine["main"](*map(tvm.runtime.tensor, feed.values()))
    return [x.numpy() for x in ([results] if hasattr(results, "numpy") else results)]


def _mnn(file: str, feed: Arrays, names: list[str]) -> list[np.ndarray]:
    # `MNN.tools` runs pip when it is imported; its converter is a module of its own.
    converter = [sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)"]
    options = ["-f", "ONNX", "--modelFile", file, "--MNNModel", f"{file}.mnn", "--bizCode", "-"]
    converted = subprocess.run([*converter, *options], capture_output=True, text=True, check=False)
    if not Path(f"{file}.mnn").exists():
        # Its lines begin with the time.
        reason = re.sub(r"\[[\d:]+\] :\d+: ", "", converted.stdout + converted.stderr)
        raise RuntimeError(reason.partition("Converted Failed")[0])
    from MNN import expr, nn

    network = nn.load_module_from_file(f"{file}.mnn", list(feed), names)
    operands = []
    for array in feed.values():
        # Its integers have 32 bits.
        is_float = array.dtype.kind == "f"
        values = np.ascontiguousarray(array, np.float32 if is_float else np.int32)
        kind = expr.float if is_float else expr.int
        operands.append(expr.const(values, list(array.shape), expr.NCHW, kind))
    results = network.forward(operands)
    if not results:
        raise RuntimeError("the run returns nothing")
    return [np.array(expr.convert(result, expr.NCHW).read()) for result in results]


RUNTIMES: dict[str, Callable[[str, Arrays, list[str]], list[np.ndarray]]] = {
    "onnxruntime": _onnxruntime,
    "onnx": _onnx,
    "openvino": _openvino,
    "tract": _tract,
    "iree": _iree,
    "tvm": _tvm,
    "cv2": _cv2,
    "tinygrad": _tinygrad,
    "MNN": _mnn,
}
"""Runtimes by the module that has them; `onnx` has the evaluator of the standard."""
DISTRIBUTIONS = {"cv2": "opencv-python-headless", "iree": "iree-base-compiler", "tvm": "apache-tvm"}


def main(runtime: str, folder: str, *stems: str) -> None:
    """Run files of a folder in a runtime, and print the version, then a failure or nothing each.

    Results of a file without expected ones go to a file.
    """
    # Text that the runtime prints itself, from C as well, is no answer.
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    print(version(DISTRIBUTIONS.get(runtime, runtime)), file=answers, flush=True)
    for stem in stems:
        feed = dict(np.load(f"{folder}/{stem}.npz"))
        is_known = Path(folder, f"{stem}.wanted.npz").exists()
        wanted = dict(np.load(f"{folder}/{stem}.wanted.npz")) if is_known else {"y": np.zeros(0)}
        try:
            found = RUNTIMES[runtime](f"{folder}/{stem}.onnx", feed, list(wanted))
            results = dict(zip(wanted, found, strict=True))
            if not is_known:
                np.savez(f"{folder}/{stem}.found.npz", **results)
            answer = difference(results, wanted) if is_known else ""
        except Exception as error:
            answer = f"refused: {short(str(error)) or type(error).__name__}"
        print(json.dumps(answer), file=answers, flush=True)


def difference(found: Arrays, wanted: Arrays) -> str:
    """Return which output has another value, or nothing."""
    for name, value in wanted.items():
        array = np.asarray(found[name])
        if array.size != value.size:
            return f"wrong: {name} has the shape {list(array.shape)}, not {list(value.shape)}"
        array = array.reshape(value.shape)
        if value.dtype.kind != "f":
            is_equal = np.array_equal(array, value)
        else:
            rtol, atol = _TOLERANCES[value.dtype.name]
            is_equal = np.allclose(array, value, rtol=rtol, atol=atol, equal_nan=True)
        if not is_equal:
            return f"wrong: {name} differs"
    return ""


def short(text: str) -> str:
    """Return the last sentence of a message, on one line."""
    lines = [line.strip() for line in text.split("Stack backtrace", maxsplit=1)[0].splitlines()]
    return " ".join([line for line in lines if line][-1:])[:160]


if __name__ == "__main__":
    main(sys.argv[1], str(Path(sys.argv[2])), *sys.argv[3:])
