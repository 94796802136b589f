"""Profiles of runtimes, as data for the passes."""

from pytensor_onnx.targets.profile import Profile
from pytensor_onnx.targets.profiles import get_profile
from pytensor_onnx.targets.schema import main_type

__all__ = ["Profile", "get_profile", "main_type"]
