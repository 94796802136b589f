"""Configuration of the site, which `sphinx-build -W -b html docs docs/_build` makes."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole
from sphinx.util.logging import getLogger

DOCS = Path(__file__).parent
ROOT = DOCS.parent
REPOSITORY = "https://github.com/pytensor-onnx/pytensor-onnx"

project = "pytensor-onnx"
author = "the developers of pytensor-onnx"
project_copyright = author
version = release = runpy.run_path(str(ROOT / "src/pytensor_onnx/_version.py"))["__version__"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
exclude_patterns = ["_build", "inventories"]
templates_path = ["_templates"]
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = {"optional", "default", "of", "or", "and", "a", "an", "with", "the", "each"}
numpydoc_xref_aliases = {
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "BitGenerator": "numpy.random.BitGenerator",
    "Variable": "pytensor.graph.basic.Variable",
    "Op": "pytensor.graph.op.Op",
    "Apply": "pytensor.graph.basic.Apply",
    "Function": "pytensor.compile.executor.Function",
    "SharedVariable": "pytensor.compile.sharedvalue.SharedVariable",
    "Model": "pymc.model.core.Model",
    "InferenceSession": "onnxruntime.InferenceSession",
    "sequence": "collections.abc.Sequence",
    "Mapping": "collections.abc.Mapping",
    "Sequence": "collections.abc.Sequence",
    "Callable": "collections.abc.Callable",
    "Path": "pathlib.Path",
    "PathLike": "os.PathLike",
}

# The inventories name the linked objects alone and are kept, so that the site builds without the
# network.
intersphinx_mapping = {
    name: (address, f"inventories/{name}.inv")
    for name, address in {
        "python": "https://docs.python.org/3",
        "numpy": "https://numpy.org/doc/stable",
        "pytensor": "https://pytensor.readthedocs.io/en/latest",
        "pymc": "https://www.pymc.io/projects/docs/en/stable",
        "onnxruntime": "https://onnxruntime.ai/docs/api/python",
    }.items()
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

# Pages that the build makes beside those of Sphinx.
linkcheck_ignore = [r"(\.\./|https://pytensor-onnx\.github\.io/pytensor-onnx/)demos/"]

DEMOS = ("digits", "regression", "training", "sampler")

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "pytensor-onnx"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js", "tables.js"]
html_show_sourcelink = False
html_baseurl = "https://pytensor-onnx.github.io/pytensor-onnx/"
html_theme_options = {
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "use_edit_page_button": True,
}
html_context = {
    "github_user": "pytensor-onnx",
    "github_repo": "pytensor-onnx",
    "github_version": "main",
    "doc_path": "docs",
}

LINK = re.compile(r"\]\((\.\./[^)#\s]+)((?:#[^)\s]*)?)\)")
LIVE = "<!-- live page -->"
FILTER = "<!-- filter -->"
OPERATION = re.compile(r"^\| ([A-Z][A-Za-z0-9_]*) \|(?=.* \| pytensor)", re.MULTILINE)
SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)


def prepare(_app: object, page: str, source: list[str]) -> None:
    """Send links to files outside of the site to the repository, and mark Python sessions."""

    def target(link: re.Match[str]) -> str:
        file = (DOCS / page).parent / link[1]
        if file.resolve().is_relative_to(DOCS):
            return link[0]
        path = file.resolve().relative_to(ROOT)
        return f"]({REPOSITORY}/{'tree' if file.is_dir() else 'blob'}/main/{path}{link[2]})"

    source[0] = SESSION.sub("```pycon\n", LINK.sub(target, source[0]))
    # A doctest ends with an empty line, which a box of code does not show.
    source[0] = re.sub(r"^(```pycon\n.*?)\n+```$", r"\1\n```", source[0], flags=re.M | re.S)
    if page == "reference/coverage":
        source[0] = OPERATION.sub(r"| {operation-name}`\1` |", source[0])
    source[0] = source[0].replace(FILTER, '```{raw} html\n<div id="filter"></div>\n```')
    if page == "reference/command-line":
        source[0] += command_line()
    source[0] = source[0].replace(LIVE, live_page()) if LIVE in source[0] else source[0]


class OperationName(SphinxRole):
    """The name of an operation in its row, which a search for it finds first, under its name."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the name as a target."""
        place = nodes.make_id(f"operation-{self.text}")
        standard = self.env.get_domain("std")
        # Some operations of one name are in two families.
        if ("operation", self.text) in standard.objects:
            return [nodes.inline(self.rawtext, self.text)], []
        target = nodes.inline(self.rawtext, self.text, ids=[place])
        standard.note_object("operation", self.text, place, location=target)
        return [target], []


def live_page() -> str:
    """Return a page that samples a model in the reader's browser, as part of a page of the site."""
    import pymc as pm

    from pytensor_onnx.pymc import export_sampler

    with pm.Model(coords={"school": list("ABCDEFGH")}) as schools:
        error = pm.Data("error", [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], dims="school")
        gain = pm.Data("gain", [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], dims="school")
        mean, spread = pm.Normal("mean", 0, 5), pm.HalfCauchy("spread", 5)
        effect = mean + spread * pm.Normal("z", dims="school")
        effect = pm.Deterministic("effect", effect, dims="school")
        pm.Normal("observed", effect, error, observed=gain, dims="school")
    text = "NUTS as a file of 0.2 MB, drawing in your browser: change the gains of the schools."
    wanted = ["mean", "spread", "effect"]
    page = export_sampler(schools, variables=wanted).page(
        title="Eight schools", text=text, height=720
    )
    return f"```{{raw}} html\n{page._repr_html_()}\n```"


def command_line() -> str:
    """Return the help of all commands."""
    import click

    from pytensor_onnx.cli.app import PROGRAM, app

    context = click.Context(app, info_name=PROGRAM, **app.context_settings)
    return "".join(_helps(app, context))


def _helps(command: Any, context: Any) -> Iterator[str]:
    yield f"\n## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, type(context)(inner, info_name=name, parent=context))


def make_demos(app: Any) -> None:
    """Make the pages that run models, once for an output folder.

    One of them contains a package that npm downloads once. Without it the site has no demos.
    """
    from pytensor_onnx.errors import PyTensorONNXError
    from pytensor_onnx.web.packages import RUNTIME, package_files

    folder = Path(app.outdir) / "demos"
    wanted = app.builder.format == "html" and app.config.sphinx_gallery_conf["plot_gallery"]
    if not wanted or folder.exists():
        return
    try:
        package_files(RUNTIME)
    except PyTensorONNXError as error:
        getLogger(__name__).info("the site has no demos: %s", error)
        return
    script = ROOT / "examples" / "web" / "build.py"
    # In a process of its own: the demos leave neither threads nor settings to the gallery.
    subprocess.run([sys.executable, script, *DEMOS, "-o", folder], check=True)


def setup(app: Any) -> None:
    """Connect the site's own steps."""
    app.connect("builder-inited", make_demos)
    app.connect("source-read", prepare)
    app.add_object_type("operation", "operation", objname="operation")
    app.add_role("operation-name", OperationName())
