"""Phases of complex vectors, which mathematics leaves free."""

import pytensor.tensor as pt

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.ops.linalg.complex_matrices import NEARLY_LARGEST


def real_at_largest(v: Parts) -> Parts:
    """Return columns whose largest element is real and positive, with their lengths.

    Of several elements that are equal but for rounding the first counts. A column of zeros is NaN.

    Examples
    --------
    >>> real, imag = pt.constant([[[3.0]]]), pt.constant([[[4.0]]])
    >>> [float(x.eval().item()) for x in real_at_largest(Parts(real, imag))]
    [5.0, 0.0]
    """
    largest = pt.maximum(pt.abs(v.real), pt.abs(v.imag)).max(axis=1, keepdims=True)
    scaled = Parts(v.real / largest, v.imag / largest)
    square = scaled.real * scaled.real + scaled.imag * scaled.imag
    is_largest = pt.ge(square, NEARLY_LARGEST * square.max(axis=1, keepdims=True))
    place = is_largest.argmax(axis=1)[:, None, :]
    is_chosen = pt.eq(pt.arange(v.real.shape[1])[:, None], place)
    x, y = (pt.switch(is_chosen, part, 0.0).sum(axis=1, keepdims=True) for part in scaled)
    size = pt.sqrt(x * x + y * y)
    turned = v * Parts(x / size, -y / size)
    return Parts(turned.real, pt.switch(is_chosen, 0.0, turned.imag))
