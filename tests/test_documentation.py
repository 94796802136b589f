"""The pages agree with each other."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pytensor_onnx.pipeline  # declares the passes
import pytensor_onnx.running.linker  # noqa: F401  (declares the rewrites)
from pytensor_onnx.late_names import MODULES
from pytensor_onnx.rules import ledger
from pytensor_onnx.site_pages import page
from tests.page_parts import read_part, write_part

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
SOURCES = [ROOT / "src/pytensor_onnx" / name for name in ("cli/demo.py", "web/controls.py")]
EXTRAS = ("discrete", "ml", "nutpie", "pymc", "scale", "web")
KNOWN = {
    *("uv", "uv && uv run", "numpy onnxruntime", "ziglang"),
    *("pytensor-onnx", *(f"'pytensor-onnx[{extra}]'" for extra in EXTRAS)),
    *(".", *(f"'.[{extra}]'" for extra in EXTRAS)),
}


@pytest.mark.parametrize("page", [*PAGES, *SOURCES], ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_install_the_package_alike(page):
    lines = re.findall(r"pip install ([^\n`#]*)", page.read_text(encoding="utf-8"))
    installed = {re.sub(r"(&& uv run).*", r"\1", line).strip() for line in lines}
    assert installed <= KNOWN


PARTS = [index.parent for index in ROOT.glob("docs/*/index.md")]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_page_of_a_part_lists_its_pages(part):
    text = (part / "index.md").read_text("utf-8")
    listed = re.findall(r"^\| \[.*?\]\((.*?)\.md\)", text, re.M)
    pages = {page.stem for page in part.glob("*.md")} - {"index"}
    pages |= {f"{index.parent.name}/index" for index in part.glob("*/index.md")}
    assert sorted(listed) == sorted(pages)
    toctree = re.search(r":hidden:\n\n(.*?)\n```", text, re.DOTALL)[1]
    assert toctree.split() == listed


def test_the_reference_lists_the_public_names():
    text = (ROOT / "docs/reference/api/index.md").read_text("utf-8")
    listed, module = set(), ""
    for line in text.splitlines():
        module = line.removeprefix(".. currentmodule:: ") if "currentmodule" in line else module
        if re.fullmatch(r"   [a-zA-Z]\w*", line):
            listed.add(f"{module}.{line.strip()}")
    modules = map(import_module, sorted({name.rpartition(".")[0] for name in listed}))
    public = {f"{m.__name__}.{name}" for m in modules for name in m.__all__}
    assert listed == public - {"pytensor_onnx.__version__"}


def test_the_page_of_the_design_is_short():
    words = re.findall(r"\S*\w\S*", (ROOT / "docs/project/design.md").read_text("utf-8"))
    assert len(words) <= 2500


NOTES = ROOT / "benchmarks" / "NOTES.md"
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, NOTES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings(page):
    for link in re.findall(r"\]\((?!http|mailto)([^)\s]+)\)", text_of(page)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


SITE = "https://pytensor-onnx.github.io/pytensor-onnx/"
FILES = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/pytensor-onnx/pytensor-onnx/(.*)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_addresses_of_the_project_lead_to_pages_and_files(page):
    for link in re.findall(r"\]\((https://[^)\s#]+)", text_of(page)):
        if link.startswith(SITE):
            target = ROOT / "docs" / link.removeprefix(SITE).replace(".html", ".md")
            assert target.exists() or target.parent.name in ("gallery", "demos"), link
        elif file := FILES.fullmatch(link):
            path = re.sub(r"^((blob|tree)/)?main/", "", file[1])
            assert (ROOT / path).exists(), link


def test_addresses_in_messages_lead_to_pages():
    sources = (ROOT / "src/pytensor_onnx").rglob("*.py")
    named = [
        n for f in sources for n in re.findall(r"\bpage\(['\"](.*?)['\"]\)", f.read_text("utf-8"))
    ]
    assert len(named) > 2
    assert page("index") == f"{SITE}index.html"
    assert not [name for name in named if not (ROOT / f"docs/{name}.md").is_file()]


def test_extras_are_those_of_the_package():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    assert MODULES.keys() <= extras.keys()


def test_the_readme_is_short_and_its_links_hold_on_a_package_index():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 150
    assert SITE not in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for rule in hook["substitutions"]:
        text, count = re.subn(rule["pattern"], rule["replacement"], text)
        assert count, rule
    addresses = re.findall(r"\]\(([^)]*)\)", text)
    assert not [link for link in addresses if not link.startswith(("https://", "#"))]
    pages = [link.removeprefix(SITE) for link in addresses if link.startswith(SITE)]
    assert [f"docs/{page}" for page in pages if "gallery" not in page]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_pages_that_the_site_includes_have_addresses_alone(name):
    """Their links would start from another folder."""
    assert not re.search(r"\]\((?!https://)", text_of(ROOT / name))


def text_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_rules_name_headings_where_they_were_measured():
    for rule in ledger().values():
        page, anchor, heading = re.fullmatch(r"([^#,]*)(#|, |)(.*)", rule.measured).groups()
        if anchor:
            assert heading in {"#": anchors_of, ", ": headings_of}[anchor](ROOT / page), rule.name


def headings_of(page: Path) -> set[str]:
    """Return headings; a heading of third order also behind the heading that it is below."""
    found, above = set(), ""
    for marks, heading in re.findall(r"^(#+) (.*)$", text_of(page), re.MULTILINE):
        found |= {heading, f"{above}: {heading}"}
        above = heading if marks == "##" else above
    return found


def test_a_command_writes_the_part_between_two_comments(tmp_path):
    page = tmp_path / "page.md"
    before, after = "a\n<!-- x -->\n", "<!-- end of x -->\nb\n<!-- y -->\n<!-- end of y -->\n"
    page.write_text(f"{before}old\n{after}", encoding="utf-8")
    write_part(page, "x", "\\1 new\n")
    assert page.read_text(encoding="utf-8") == f"{before}\\1 new\n{after}"
    assert read_part(page, "x") == "\\1 new\n"
    assert read_part(page, "y") == ""
    with pytest.raises(ValueError, match="has 0 parts between comments of the name 'z'"):
        write_part(page, "z", "new")


def test_the_few_tests_of_the_gate_exist():
    words = (ROOT / ".ci/few_tests").read_text("utf-8").split()
    named = [word.strip('"') for word in words if word.strip('"').startswith("tests/")]
    for path, _, name in (node.partition("::") for node in named):
        assert (ROOT / path).exists(), path
        if name:
            assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text("utf-8"), name
    assert len(named) > 10
