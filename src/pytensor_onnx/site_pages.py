"""Addresses of the pages of the site, for messages to users."""

SITE = "https://pytensor-onnx.github.io/pytensor-onnx"


def page(name: str) -> str:
    """Return the address of a page.

    Parameters
    ----------
    name
        Its path in the site, without a suffix.

    Examples
    --------
    >>> page("how-to/add-an-op")
    'https://pytensor-onnx.github.io/pytensor-onnx/how-to/add-an-op.html'
    """
    return f"{SITE}/{name}.html"
