"""Read the description of a page, a small YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.extras import require


def read_description(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the paths of images relative to it.

    Raises
    ------
    MissingExtraError
        If PyYAML is missing.
    PyTensorONNXError
        If the file is no mapping in YAML.
    """
    require("web", "the description of a page")
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise PyTensorONNXError(f"{path} is no YAML: {reason}") from None
    if not isinstance(content, dict):
        raise PyTensorONNXError(f"{path} has no keys such as title, text, inputs, outputs")
    for key in ("inputs", "outputs"):
        entries = content.get(key) or {}
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            raise PyTensorONNXError(
                f"{path}: {key} is a mapping from names to options, as in "
                f"{key}: {{x: {{label: height}}}}"
            )
    for entry in (content.get("inputs") or {}).values():
        if "example" in entry:
            entry["example"] = str(path.parent / str(entry["example"]))
    return content
