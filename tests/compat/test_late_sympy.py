"""SymPy is imported when onnx_ir computes with sizes, and users import it as ever."""

import subprocess
import sys

import pytest

# Without PyTensor, whose import takes a second.
LATE = "import sys, pytensor_onnx_command, pytensor_onnx\nimport onnx_ir as ir\n"
HAS_NONE = "assert not [name for name in sys.modules if name.startswith('sympy')]\n"
ADDS = "assert str((ir.SymbolicDim('n') + 1).value) == 'n + 1'\n"


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "code",
    [
        LATE + HAS_NONE + ADDS + "assert 'sympy.core' in sys.modules",
        # Parts of SymPy, first and after SymPy itself: each module exists once.
        LATE + "import sympy.core.symbol\n" + ADDS + "assert sympy.core.symbol.Symbol is "
        "sympy.Symbol\nassert sympy.core is sys.modules['sympy.core']",
        LATE + "from sympy import Symbol, core\n" + ADDS + "import sympy\n"
        "assert core.Symbol is sympy.Symbol is Symbol",
        "import sympy\n" + LATE + ADDS + "assert isinstance((ir.SymbolicDim('n') + 1)._expr, "
        "sympy.Expr)",
        # Expressions of users, by pickle and after a second import of onnx_ir's module.
        LATE + HAS_NONE + "import sympy, pickle, importlib\n"
        "n = pickle.loads(pickle.dumps(sympy.Symbol('n') * 2))\n"
        "assert ir.SymbolicDim(n).value == '2*n'\n"
        "importlib.reload(sympy)\n"
        + ADDS
        + "core = importlib.reload(sys.modules['onnx_ir._core'])\n"
        "import onnx_ir._symbolic_shapes as expressions\nimportlib.reload(expressions)\n"
        "assert (core.SymbolicDim('n') + 1).value == 'n + 1'",
        # Errors are as before where a size is of another type.
        LATE
        + "try:\n    ir.SymbolicDim(1.5)\nexcept TypeError as error:\n    assert 'sympy.Expr' in "
        "str(error)\nelse:\n    raise AssertionError",
    ],
    ids=["late", "a part first", "names", "SymPy first", "pickle and reload", "errors"],
)
@pytest.mark.slow
def test_every_import_of_sympy(code):
    run(code)


@pytest.mark.slow
def test_threads_that_use_sizes_and_sympy_at_once():
    run(
        LATE + HAS_NONE + "from concurrent.futures import ThreadPoolExecutor\n"
        "def use(k):\n"
        "    if k % 3:\n"
        "        return (ir.SymbolicDim('n') + k).value\n"
        "    import sympy\n"
        "    return str(sympy.Symbol('n') + k)\n"
        "sys.setswitchinterval(1e-4)\n"
        "with ThreadPoolExecutor(12) as pool:\n"
        "    results = list(pool.map(use, range(12)))\n"
        "assert results[1:] == [f'n + {k}' for k in range(1, 12)]\n"
    )


@pytest.mark.slow
def test_a_compiled_function_needs_no_sympy():
    run(
        "import sys, pytensor, pytensor.tensor as pt, pytensor_onnx\n"
        "x = pt.dmatrix('x')\n"
        "f = pytensor.function([x], pt.exp(x[1:] @ x.T).sum(axis=0), mode='ONNX')\n"
        "f([[1.0, 2.0], [3.0, 4.0]])\n" + HAS_NONE
    )
