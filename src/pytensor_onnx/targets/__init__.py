"""Profiles of runtimes, as data for the passes."""

from pytensor_onnx.targets.kernel_tables import main_type
from pytensor_onnx.targets.profiles import Profile, get_profile

__all__ = ["Profile", "get_profile", "main_type"]
