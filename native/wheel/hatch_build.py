"""Build hook: the library of kernels, compiled into the wheel, and the tag of its platform."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent


class KernelsBuildHook(BuildHookInterface):
    """Compiles the library; there is no wheel without it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library, and the tag of the platform."""
        folder = HERE / "src" / "pytensor_onnx_kernels"
        library = runpy.run_path(str(HERE.parent / "build.py"))["build"](folder)
        if library is None:
            raise RuntimeError("the kernels need a C compiler")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
