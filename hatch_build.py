"""Build backend and hook: hatchling, which compiles the library of kernels into the package.

A wheel needs ziglang, the compiler of the modules of pages, unless they are built already. An
editable install does not: `pytensor_onnx.web` builds them there when a page first needs them.
"""

import os
import runpy
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]
# Hatchling leaves these out for pip.
for _name in ("prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel"):
    if hasattr(hatchling.build, _name):
        globals()[_name] = getattr(hatchling.build, _name)

ROOT = Path(__file__).parent
FOLDER = ROOT / "src" / "pytensor_onnx" / "kernels"
ALL = "PYTENSOR_ONNX_ALL_PLATFORMS"
"""Environment variable that makes a wheel for all platforms, as releases are, if it is ``1``."""

PAGES = "PYTENSOR_ONNX_TAPE"
"""Environment variable that makes a wheel without the modules of pages, if it is ``0``."""

COMPILER = "ziglang>=0.13"
# Systems for which ziglang has wheels; others get a package without modules of pages.
HAS_WHEELS = "sys_platform == 'linux' or sys_platform == 'darwin' or sys_platform == 'win32'"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return the requirements of a wheel: the compiler of the modules of pages, too."""
    required = hatchling.build.get_requires_for_build_wheel(config_settings)
    needs = _has_pages() and not _native()["has_wasm"](FOLDER) and COMPILER not in required
    return [*required, f"{COMPILER}; {HAS_WHEELS}"] if needs else required


class KernelsBuildHook(BuildHookInterface):
    """Compiles the machine's own library, and the modules of pages where ziglang is installed.

    Without a C compiler the package has no library.
    """

    def dependencies(self) -> list[str]:
        """Return ziglang for a wheel of all platforms, or where the system has no C compiler."""
        needs = _serves_all() or _native()["compiler"]() is None
        return [COMPILER] if needs else []

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
        modules, reason = self._modules()
        if reason and version == "standard":
            self.app.display_warning(
                f"the wheel has no tape for pages, which then take ONNX Runtime Web: {reason}"
            )
        # A developer's folder may hold libraries of other platforms, too.
        build_data["force_include"].update(
            {str(x): f"pytensor_onnx/kernels/{x.name}" for x in [*libraries, *modules]}
        )

    def _modules(self) -> tuple[list[Path], str]:
        """Return the modules of pages, or the reason why there are none."""
        if not _has_pages():
            return [], f"{PAGES}=0"
        try:
            modules = _native()["build_wasm"](FOLDER)
        except (OSError, subprocess.CalledProcessError) as error:
            if _serves_all():
                raise
            return [], f"ziglang fails to compile it ({error})"
        return modules, "" if modules else "no ziglang to compile it"


def _serves_all() -> bool:
    return os.environ.get(ALL) == "1"


def _has_pages() -> bool:
    return os.environ.get(PAGES) != "0"


def _native() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "native" / "build.py"))


def _platform_tag() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
