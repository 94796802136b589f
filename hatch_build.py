"""Build hook: compile the library of kernels into the package."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
FOLDER = ROOT / "src" / "pytensor_onnx" / "kernels"


class KernelsBuildHook(BuildHookInterface):
    """Compiles the machine's own library; without a C compiler the package has none."""

    def dependencies(self) -> list[str]:
        """Return ziglang where the system has no C compiler."""
        needs = runpy.run_path(str(ROOT / "native" / "build.py"))["compiler"]() is None
        return ["ziglang>=0.13"] if needs else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library to a wheel, and beside the sources for an editable install."""
        library = runpy.run_path(str(ROOT / "native" / "build.py"))["build"](FOLDER)
        if library is None:
            self.app.display_warning("no C compiler: the package runs without kernels")
            return
        build_data["artifacts"].append(f"/src/pytensor_onnx/kernels/{library.name}")
        build_data["pure_python"] = False
        build_data["infer_tag"] = False
