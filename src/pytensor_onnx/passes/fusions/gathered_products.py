"""Sum the products of a transposed convolution, gathered by the elements that they belong to."""

from collections.abc import Sequence

import numpy as np


def products_of_elements(
    counts: Sequence[int],
    taps: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    starts: Sequence[int],
) -> np.ndarray:
    """Return the products that are summed for each element of the result, by their positions.

    Parameters
    ----------
    counts, taps, sizes
        Sizes of an image, of the filters, and of the result.
    strides, dilations
        Distances between the windows of neighbouring elements, and between taps.
    starts
        Elements cropped from the start of each axis.

    Returns
    -------
    numpy.ndarray
        Positions in an array (*taps, *counts), of shape (products, prod(sizes)). Elements with
        fewer products than others have the position after the last one.

    Examples
    --------
    >>> products_of_elements([3], [2], [4], [1], [1], [0])
    array([[0, 1, 2, 5],
           [6, 3, 4, 6]])
    """
    rank = len(sizes)
    indices = np.indices((*taps, *counts)).reshape(2 * rank, -1).T
    places = indices[:, :rank] * dilations + indices[:, rank:] * strides - np.asarray(starts)
    of_elements: list[list[int]] = [[] for _ in range(int(np.prod(sizes)))]
    for product, place in enumerate(places.tolist()):
        if all(0 <= at < size for at, size in zip(place, sizes, strict=True)):
            of_elements[int(np.ravel_multi_index(place, sizes))].append(product)
    most = max(1, *map(len, of_elements))
    return np.array([group + [len(places)] * (most - len(group)) for group in of_elements]).T
