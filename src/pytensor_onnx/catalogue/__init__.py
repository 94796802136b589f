"""A library of ONNX functions for probabilistic models, which any model can link."""

from typing import TYPE_CHECKING

from pytensor_onnx.late_names import late_names

if TYPE_CHECKING:
    from pytensor_onnx.catalogue.library import (
        build_catalogue as build_catalogue,
        entries as entries,
    )

__getattr__, __all__ = late_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
