"""The patches of docs/project/upstream.md apply to nutpie and PyMC, and do what they promise."""

import importlib
import inspect
import re
import sys
import types

import pytest

pm = pytest.importorskip("pymc")
nutpie = pytest.importorskip("nutpie")

from pytensor_onnx.running.linker import ONNXLinker  # noqa: E402
from scripts.upstream import SECTIONS  # noqa: E402

PATCHES = re.findall(r"^```diff\n(.*?)^```$", SECTIONS[-1], re.MULTILINE | re.DOTALL)


def patched(name, patch, monkeypatch):
    """Return a module of the source of another one with a patch."""
    module = importlib.import_module(name)
    lines = patch.splitlines(keepends=True)
    old, new = ("".join(x[1:] for x in lines if x[0] in marks) for marks in (" -", " +"))
    source = inspect.getsource(module)
    assert source.count(old) == 1
    changed = types.ModuleType(f"{module.__name__}_patched")
    changed.__package__ = module.__package__
    monkeypatch.setitem(sys.modules, changed.__name__, changed)
    exec(compile(source.replace(old, new), changed.__name__, "exec"), changed.__dict__)
    return changed


@pytest.mark.filterwarnings("ignore:pm.sample.nuts_sampler='nutpie'. compiles the density in")
def test_pymcs_call_of_nutpie_in_mode_onnx_samples_in_mode_onnx(monkeypatch):
    of_nutpie, of_pymc = PATCHES
    compile_model = patched("nutpie.compile_pymc", of_nutpie, monkeypatch).compile_pymc_model
    compiled = []

    def compile_and_keep(*arguments, **named):
        compiled.append(compile_model(*arguments, **named))
        return compiled[-1]

    monkeypatch.setattr(nutpie, "compile_pymc_model", compile_and_keep)
    monkeypatch.setattr(ONNXLinker, "nutpie_backend", "onnx", raising=False)
    sample = patched("pymc.sampling.mcmc", of_pymc, monkeypatch).sample
    with pm.Model() as model:
        pm.Normal("x", 3.0, 0.1)
    few = {"draws": 120, "tune": 150, "chains": 2, "random_seed": 1, "progressbar": False}
    tree = sample(**few, model=model, nuts_sampler="nutpie", compile_kwargs={"mode": "ONNX"})
    assert type(compiled[0]).__module__.startswith("pytensor_onnx")
    assert abs(float(tree.posterior["x"].mean()) - 3.0) < 0.1
    with pytest.raises(ValueError, match="cannot be jax when using onnx"):
        compile_model(model, backend="onnx", gradient_backend="jax")
