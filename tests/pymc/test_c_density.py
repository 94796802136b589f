"""Log-densities as C libraries agree with the files they come from, from C, R and Rust."""

import ctypes
import shutil
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor_onnx import native
from pytensor_onnx.errors import ArgumentError, UncoveredError
from pytensor_onnx.pymc import export_c_density, export_logp, parameter_names

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "c_density"

pytestmark = pytest.mark.skipif(native.library() is None, reason="there is no native library")


@pytest.fixture(scope="module")
def schools():
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", shape=8)
        theta = pm.Deterministic("theta", mu + tau * z)
        pm.Normal("y", theta, sigma, observed=y)
    return model


@pytest.fixture(scope="module")
def folder(schools, tmp_path_factory):
    return export_c_density(schools, tmp_path_factory.mktemp("schools")).parent


class Opened:
    """A density by `ctypes`."""

    def __init__(self, folder):
        [library] = folder.glob("libpytensor_onnx.*")
        self.library = ctypes.CDLL(str(library))
        for name in ("open", "point_name", "variable_name"):
            getattr(self.library, f"density_{name}").restype = ctypes.c_char_p
        for name in ("dim", "variable_count"):
            getattr(self.library, f"density_{name}").restype = ctypes.c_int64
        self.at = ctypes.c_void_p()
        path = str(folder / "model.density").encode()
        self.problem = self.library.density_open(path, ctypes.byref(self.at))

    def names(self, kind):
        function = getattr(self.library, f"density_{kind}_name")
        return [x.decode() for i in range(100) if (x := function(self.at, ctypes.c_int64(i)))]

    def density(self, point):
        logp, gradient = np.empty(1), np.empty(point.size)
        function = self.library.density_log_density_gradient
        reason = function(self.at, *map(_address, (point, logp, gradient)))
        return reason, float(logp[0]), gradient

    def variables(self, point):
        found = np.empty(self.library.density_variable_count(self.at))
        assert self.library.density_variables(self.at, _address(point), _address(found)) == 0
        return found


def _address(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def _check(model, folder, seed=1):
    opened = Opened(folder)
    assert opened.problem is None
    assert opened.names("point") == parameter_names(model)
    names = parameter_names(model, space="constrained", deterministics=True)
    assert opened.names("variable") == names
    point = np.random.default_rng(seed).normal(size=len(parameter_names(model)))
    reason, logp, gradient = opened.density(point)
    values = _values(model, point)
    np.testing.assert_allclose(logp, model.compile_logp()(values), rtol=1e-12)
    np.testing.assert_allclose(gradient, model.compile_dlogp()(values), rtol=1e-10)
    assert reason == 0
    outputs = [*model.free_RVs, *model.deterministics]
    replaced = model.replace_rvs_by_values(outputs)
    constrained = model.compile_fn(replaced, inputs=model.value_vars)(values)
    expected = np.concatenate([np.ravel(x) for x in constrained])
    np.testing.assert_allclose(opened.variables(point), expected, rtol=1e-12)


def _values(model, point):
    values, start = {}, model.initial_point()
    for variable in model.value_vars:
        size = start[variable.name].size
        values[variable.name] = point[:size].reshape(start[variable.name].shape)
        point = point[size:]
    return values


@pytest.mark.slow
def test_densities_gradients_and_variables_are_pymcs(schools, folder):
    _check(schools, folder)


@pytest.mark.slow
def test_models_with_data_and_other_transforms(tmp_path):
    x = np.linspace(0, 1, 30)
    with pm.Model() as model:
        data = pm.Data("x", x)
        weights = pm.Dirichlet("weights", np.ones(3))
        slope = pm.Uniform("slope", -1, 2)
        noise = pm.HalfNormal("noise")
        pm.Normal("y", slope * data + weights[0], noise, observed=np.sin(x))
    _check(model, export_c_density(model, tmp_path).parent)


def test_the_start_is_the_initial_point(schools, folder):
    opened = Opened(folder)
    start = np.empty(10)
    opened.library.density_start(opened.at, _address(start))
    expected = np.concatenate(
        [np.ravel(schools.initial_point()[v.name]) for v in schools.value_vars]
    )
    np.testing.assert_array_equal(start, expected)


def test_points_without_a_density_have_a_reason(folder):
    point = np.zeros(10)
    point[0] = np.inf
    reason, logp, _ = Opened(folder).density(point)
    assert reason in (3, 4)
    assert not np.isfinite(logp) or reason == 3


def test_threads_share_a_density(folder):
    opened = Opened(folder)
    points = np.random.default_rng(2).normal(size=(400, 10))
    expected = [opened.density(point)[1] for point in points]
    with ThreadPoolExecutor(4) as pool:
        assert [found[1] for found in pool.map(opened.density, points)] == expected


@pytest.mark.slow
def test_float32_files_take_float64_points(schools, tmp_path):
    opened = Opened(export_c_density(schools, tmp_path, precision="float32").parent)
    point = np.full(10, 0.25)
    logp, gradient = export_logp(schools, precision="float32", verify=False)(
        point.astype("float32")
    )
    reason, found, found_gradient = opened.density(point)
    assert (reason, found) == (0, float(logp))
    np.testing.assert_array_equal(found_gradient, gradient.astype("float64"))


def test_models_that_have_no_density_of_a_vector_are_refused(tmp_path):
    with pm.Model() as model:
        pm.Poisson("count", 3.0)
    with pytest.raises(ArgumentError, match="these are discrete: count"):
        export_c_density(model, tmp_path)
    with pm.Model() as model:
        pm.Normal("y", observed=[1.0])
    with pytest.raises(ArgumentError, match="it has no free variable"):
        export_c_density(model, tmp_path)


def test_nodes_that_kernels_do_not_cover_are_named(tmp_path):
    with pm.Model() as model:
        x = pm.Normal("x", shape=(4,))
        pm.Potential("positive", pt.log1p(x[x > 0]).sum())
    folder = tmp_path / "folder"
    with pytest.raises(UncoveredError, match=r"a tape does not cover .*Compress has no kernel"):
        export_c_density(model, folder)
    assert not folder.exists()


def test_files_that_are_damaged_or_missing_are_refused(folder, tmp_path):
    [library] = folder.glob("libpytensor_onnx.*")
    shutil.copy(library, tmp_path)
    assert Opened(tmp_path).problem == b"the file cannot be read"
    content = (folder / "model.density").read_bytes()
    damaged = tmp_path / "model.density"
    for changed, problem in [
        (b"", b"the file is no density"),
        (b"PTTAPE\0\0" + content[8:], b"the file is no density"),
        (content[:-8], b"the file is damaged"),
        (content[:200] + bytes([content[200] ^ 1]) + content[201:], b"the file is damaged"),
        (_sealed(content[16:].replace(b"Softmax\0", b"Softmix\0")), b"another version"),
    ]:
        damaged.write_bytes(changed)
        assert problem in Opened(tmp_path).problem


def _sealed(content):
    return b"PTDENS\0\1" + struct.pack("<Q", zlib.crc32(content)) + content


HOSTILE = """
import random, sys
from pathlib import Path
import numpy as np
from tests.pymc.test_c_density import Opened, _sealed
folder, rng = Path(sys.argv[1]), random.Random(3)
content = (folder / "model.density").read_bytes()[16:]
for i in range(300):
    changed = bytearray(content)
    for _ in range(rng.choice([1, 2, 8])):
        changed[rng.randrange(4000, len(changed))] = rng.choice([0, 1, 7, 127, 255])
    (folder / "model.density").write_bytes(_sealed(bytes(changed)))
    opened = Opened(folder)
    if opened.problem is None and opened.library.density_dim(opened.at) == 10:
        opened.density(np.zeros(10))
print("survived")
"""


def test_no_file_makes_the_library_crash(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    run = [sys.executable, "-c", HOSTILE, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.strip() == "survived", done.stderr[-2000:]


def test_the_header_declares_the_functions():
    """The compiler sees both declarations of each function."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    header = ROOT / "src" / "pytensor_onnx" / "running" / "density.h"
    source = ROOT / "native" / "density.c"
    subprocess.run([compiler, "-fsyntax-only", "-include", header, source], check=True)
    declared = header.read_text().count("density_")
    assert declared > source.read_text().count("EXPORT ")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "rust", "r"])
def test_the_examples_find_the_density(schools, folder, tmp_path, language):
    found = {"c": "cc", "rust": "rustc", "r": "Rscript"}[language]
    tool = shutil.which(found)
    if tool is None or sys.platform != "linux":
        pytest.skip(f"there is no {found}, or its example is not for this system")
    program = str(tmp_path / "program")
    link = [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    if language == "c":
        source = str(EXAMPLES / "density.c")
        subprocess.run(
            [tool, source, f"-I{folder}", *link, "-lpytensor_onnx", "-o", program], check=True
        )
        run = [program, str(folder / "model.density")]
    elif language == "rust":
        arguments = ["-L", str(folder), "-C", f"link-arg={link[1]}", "-o", program]
        subprocess.run([tool, str(EXAMPLES / "density.rs"), *arguments], check=True)
        run = [program, str(folder / "model.density")]
    else:
        run = [tool, str(EXAMPLES / "density.R"), str(folder)]
    printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    start = np.concatenate([np.ravel(x) for x in schools.initial_point().values()])
    logp, gradient = export_logp(schools, verify=False)(start)
    numbers = [float(x) for x in printed.split()[:2]]
    np.testing.assert_array_equal(numbers, [float(logp), gradient[0]])
