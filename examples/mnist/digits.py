"""Images of handwritten digits, from scikit-learn or from the files of MNIST."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

IMAGES_MAGIC, LABELS_MAGIC = 2051, 2049


@dataclass(frozen=True)
class Digits:
    """Images (n, 1, side, side) in float32 from 0 to 1, and their labels (n,) from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @property
    def side(self) -> int:
        """Height and width of the images."""
        return self.train_images.shape[2]


def small_digits() -> Digits:
    """Return the 1797 images of 8x8 of scikit-learn, a quarter of them for the test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 1, 8, 8) / 16).astype("float32")
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=0
    )
    return Digits(train_images, train_labels, test_images, test_labels)


def mnist(folder: str | Path) -> Digits:
    """Return the images of 28x28 of MNIST from a folder with its four files, packed or not.

    Raises
    ------
    ValueError
        If files are missing or hold something else; all of them are named.
    """
    wanted = {
        f"{part}-{kind}": magic
        for part in ("train", "t10k")
        for kind, magic in (
            ("images-idx3-ubyte", IMAGES_MAGIC),
            ("labels-idx1-ubyte", LABELS_MAGIC),
        )
    }
    arrays, problems = [], []
    for name, magic in wanted.items():
        try:
            arrays.append(_read(Path(folder), name, magic))
        except (OSError, EOFError, ValueError) as error:
            problems.append(f"- {name}: {error}")
    if problems:
        listing = "\n".join(problems)
        raise ValueError(f"{folder} does not hold the files of MNIST:\n{listing}")
    train_images, train_labels, test_images, test_labels = arrays
    return Digits(_scaled(train_images), train_labels, _scaled(test_images), test_labels)


def _read(folder: Path, name: str, magic: int) -> np.ndarray:
    packed = folder / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    rank = magic % 256
    head = np.frombuffer(data[: 4 * (rank + 1)], ">i4")
    if len(head) != rank + 1 or head[0] != magic:
        raise ValueError("not a file of this kind")
    return np.frombuffer(data, "uint8", offset=4 * (rank + 1)).reshape(head[1:])


def _scaled(images: np.ndarray) -> np.ndarray:
    return (images[:, None] / 255).astype("float32")
