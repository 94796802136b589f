"""Build hook: compile the library of kernels into the package."""

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
FOLDER = ROOT / "src" / "pytensor_onnx" / "kernels"
ALL = "PYTENSOR_ONNX_ALL_PLATFORMS"
"""Environment variable that makes a wheel for all platforms, as releases are, if it is ``1``."""


class KernelsBuildHook(BuildHookInterface):
    """Compiles the machine's own library, and the modules of pages where ziglang is installed.

    Without a C compiler the package has no library.
    """

    def dependencies(self) -> list[str]:
        """Return ziglang for a wheel of all platforms, or where the system has no C compiler."""
        needs = _serves_all() or _native()["compiler"]() is None
        return ["ziglang>=0.13"] if needs else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries to a wheel, and beside the sources for an editable install."""
        if _serves_all():
            libraries = _native()["build_all"](FOLDER)
        else:
            library = _native()["build"](FOLDER)
            libraries = [library] if library else []
            build_data["tag"] = f"py3-none-{_platform_tag() if library else 'any'}"
        if not libraries:
            self.app.display_warning("no C compiler: the package runs without kernels")
        libraries += _native()["build_wasm"](FOLDER)
        # A developer's folder may hold libraries of other platforms, too.
        build_data["force_include"].update(
            {str(x): f"pytensor_onnx/kernels/{x.name}" for x in libraries}
        )


def _serves_all() -> bool:
    return os.environ.get(ALL) == "1"


def _native() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "native" / "build.py"))


def _platform_tag() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
