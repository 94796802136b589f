"""Elementary functions of regions beside the C library, with one thread.

Where the environment variable SLEEF names the prefix of an installation of SLEEF, its functions for
vectors of 32 bytes, which use fused operations, have a column.
"""

import ctypes
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from benchmarks.timing import Table, interleaved
from pytensor_onnx import native
from pytensor_onnx.graph.traversal import STANDARD_DOMAIN
from pytensor_onnx.kernels import regions

SIZE = 10_000
# Each operator or function with its names in C and in SLEEF, and the ranges of its arguments.
FUNCTIONS: dict[str, tuple[str, str, tuple[tuple[float, float], ...]]] = {
    "Pow": ("pow", "powd4_u10", ((0.01, 100), (-5, 5))),
    "Exp": ("exp", "expd4_u10", ((-20, 20),)),
    "Log": ("log", "logd4_u10", ((0.01, 100),)),
    "Sin": ("sin", "sind4_u10", ((-20, 20),)),
    "Cos": ("cos", "cosd4_u10", ((-20, 20),)),
    "Tan": ("tan", "tand4_u10", ((-20, 20),)),
    "Tanh": ("tanh", "tanhd4_u10", ((-5, 5),)),
    "Sinh": ("sinh", "sinhd4_u10", ((-5, 5),)),
    "Cosh": ("cosh", "coshd4_u10", ((-5, 5),)),
    "Asin": ("asin", "asind4_u10", ((-1, 1),)),
    "Acos": ("acos", "acosd4_u10", ((-1, 1),)),
    "Atan": ("atan", "atand4_u10", ((-5, 5),)),
    "Exp2": ("exp2", "exp2d4_u10", ((-20, 20),)),
    "Expm1": ("expm1", "expm1d4_u10", ((-5, 5),)),
    "Log2": ("log2", "log2d4_u10", ((0.01, 100),)),
    "Log10": ("log10", "log10d4_u10", ((0.01, 100),)),
    "Log1p": ("log1p", "log1pd4_u10", ((-0.9, 5),)),
    "ArcSinh": ("asinh", "asinhd4_u10", ((-5, 5),)),
    "ArcCosh": ("acosh", "acoshd4_u10", ((1, 10),)),
    "ArcTanh": ("atanh", "atanhd4_u10", ((-1, 1),)),
    "Erf": ("erf", "erfd4_u10", ((-3, 3),)),
    "Erfc": ("erfc", "erfcd4_u15", ((-3, 10),)),
    "GammaLn": ("lgamma", "lgammad4_u10", ((0.1, 30),)),
}


def _loops() -> ctypes.CDLL:
    """Compile loops over the functions of the C library, and over those of SLEEF."""
    sleef, source = os.environ.get("SLEEF"), "#include <math.h>\n"
    if sleef:
        source += "#include <immintrin.h>\n#include <sleef.h>\n"
    for name, vectors, ranges in FUNCTIONS.values():
        head = "(double *restrict out, const double *x, const double *y, long n)"
        given = ["x", "y"][: len(ranges)]
        call = f"{name}({', '.join(f'{a}[i]' for a in given)})"
        source += f"void {name}_loop{head} {{ for (long i = 0; i < n; i++) out[i] = {call}; }}\n"
        if sleef:
            call = f"Sleef_{vectors}avx2({', '.join(f'_mm256_loadu_pd({a} + i)' for a in given)})"
            source += f"void {name}_sleef{head} {{ for (long i = 0; i < n; i += 4) "
            source += f"_mm256_storeu_pd(out + i, {call}); }}\n"
    folder = Path(tempfile.mkdtemp())
    (folder / "loops.c").write_text(source)
    command = ["cc", "-O2", "-shared", "-fPIC", "loops.c", "-o", "loops.so"]
    if sleef:
        command += ["-mavx2", f"-I{sleef}/include", f"-L{sleef}/lib", "-lsleef"]
    subprocess.run([*command, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "loops.so"))


def _session(name: str, inputs: list[str]) -> onnxruntime.InferenceSession:
    """Return a session of one operator or function, which is a region."""
    kind = TensorProto.DOUBLE
    values = [helper.make_tensor_value_info(x, kind, [SIZE]) for x in (*inputs, "out")]
    domain = "" if onnx.defs.has(name) and name != "Erf" else STANDARD_DOMAIN
    node = helper.make_node(f"{name}_float64" if domain else name, inputs, ["out"], domain=domain)
    graph = helper.make_graph([node], "graph", values[:-1], values[-1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(STANDARD_DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    fused = regions.fuse(model.SerializeToString()).model
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    native.register_with_regions(options)
    return onnxruntime.InferenceSession(fused, options)


def measure() -> Table:
    """Time each function for an array of float64, in nanoseconds per element."""
    table = Table(
        "Elementary functions",
        ["function", "region, ns", "C library, ns", "SLEEF, ns"],
        note=f"Per element of {SIZE} random float64 numbers, with one thread, the call included.",
    )
    loops, rng = _loops(), np.random.default_rng(0)
    fewest, regions.FEWEST_NODES = regions.FEWEST_NODES, 1
    for name, (in_c, _, ranges) in FUNCTIONS.items():
        given = [rng.uniform(ends[0], ends[1], SIZE) for ends in ranges]
        feed = dict(zip("ab", given, strict=False))
        session, out = _session(name, [*feed]), np.empty(SIZE)
        arrays = [ctypes.c_void_p(x.ctypes.data) for x in (out, given[0], given[-1])]
        calls = {"region": partial(session.run, None, feed)}
        for column in ("loop", "sleef"):
            if loop := getattr(loops, f"{in_c}_{column}", None):
                calls[column] = partial(loop, *arrays, ctypes.c_long(SIZE))
        best = interleaved(calls, rounds=500, seconds=0.0005)
        columns = ("region", "loop", "sleef")
        cells = (f"{1e9 * best[x] / SIZE:.1f}" if x in best else "–" for x in columns)
        table.rows.append([name, *cells])
        table.claim(f"{name} against the C library", best["region"] / best["loop"], 1)
    regions.FEWEST_NODES = fewest
    return table


if __name__ == "__main__":
    measure().show()
