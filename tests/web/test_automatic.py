"""Pages that nobody described: what they are made of, and how they open."""

import io
import json
import shutil
import subprocess
from importlib.resources import files
from statistics import NormalDist

import arviz_stats.base
import numpy as np
import onnx_ir as ir
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.cli.exported_pages import program_of
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx.pymc import (
    export_advi,
    export_laplace,
    export_logp,
    export_pathfinder,
    export_predictor,
    export_sampler,
    export_smc,
    sample,
)
from pytensor_onnx.web.automatic import automatic_page
from pytensor_onnx.web.packages import package_files
from tests.web.pages import AXE, needs_chromium
from tests.web.tapes import needs_tapes

RNG = np.random.default_rng(0)
AGE = RNG.uniform(0, 18, 40).round(1)
GROUP = RNG.integers(0, 3, 40)
NAMES = ["north", "east", "south, west"]


def heights():
    """Return a model of groups, of a number, and of a factor of two values."""
    with pm.Model(coords={"region": NAMES}) as model:
        age, region = pm.Data("age", AGE), pm.Data("region_index", GROUP)
        level = pm.Normal("level", 80, 10, dims="region")
        slope = pm.Normal("slope", 5, 1)
        mean = level[region] + slope * age
        measured = pm.Data("measured", 80 + 5 * AGE)
        pm.Normal("height", mean, 3, observed=measured, shape=mean.shape)
    return model


@pytest.fixture(scope="module")
def predictor():
    posterior = {"level": RNG.normal(80, 1, (1, 30, 3)), "slope": RNG.normal(5, 0.1, (1, 30))}
    return export_predictor(heights(), posterior, target="web", verify=False)


@pytest.fixture(scope="module")
def sampler():
    return export_sampler(heights(), target="web", verify=False)


def test_files_of_pymc_models_have_what_a_page_needs(predictor):
    told = stored_mapping(predictor.model.metadata_props, "pymc")
    assert told["indices"] == {"region_index": "region"}
    assert told["observed_data"] == {"height": "measured"}
    assert told["data"]["age"]["sample"] == AGE.tolist()
    assert told["data"]["age"]["max"] == AGE.max()
    assert told["data"]["region_index"]["values"] == [0, 1, 2]
    hidden = export_predictor(
        heights(),
        {"level": np.zeros((1, 3, 3)), "slope": np.ones((1, 3))},
        share_data=False,
        verify=False,
    )
    told = stored_mapping(hidden.model.metadata_props, "pymc")
    assert set(told["data"]["age"]) == {"shape", "dtype", "input", "sha256"}


def test_a_predictor_has_covariates_with_labels_and_the_data(predictor):
    page = automatic_page(predictor.model, "model")
    region, age = sorted(page["predictor"]["covariates"], key=lambda x: x["label"], reverse=True)
    assert region["choices"] == [[i, name] for i, name in enumerate(NAMES)]
    assert (age["min"], age["max"]) == (AGE.min(), AGE.max())
    assert "choices" not in age
    (height,) = page["predictor"]["outputs"]
    assert height["observed"] == pytest.approx((80 + 5 * AGE).tolist())
    assert page["inputs"]["seed"]["more"]
    assert page["title"] == "Height by age and region"


LIKELIHOODS = {
    "Poisson": lambda mean: pm.Poisson.dist(pm.math.exp(mean), shape=mean.shape),
    "NegativeBinomial": lambda mean: pm.NegativeBinomial.dist(
        mu=pm.math.exp(mean), alpha=2.0, shape=mean.shape
    ),
    "ZeroInflatedPoisson": lambda mean: pm.ZeroInflatedPoisson.dist(
        psi=0.5, mu=pm.math.exp(mean), shape=mean.shape
    ),
    "Gamma": lambda mean: pm.Gamma.dist(2.0, pm.math.exp(mean), shape=mean.shape),
    "Beta": lambda mean: pm.Beta.dist(2.0, pm.math.exp(mean), shape=mean.shape),
    "StudentT": lambda mean: pm.StudentT.dist(nu=4.0, mu=mean, sigma=1.0, shape=mean.shape),
    "Binomial": lambda mean: pm.Binomial.dist(9, pm.math.sigmoid(mean), shape=mean.shape),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_predictors_whose_variable_is_drawn_by_rejection_are_tapes(name):
    needs_tapes()
    with pm.Model() as model:
        x = pm.Data("x", np.arange(1.0, 5.0))
        mean = pm.Normal("slope") * x
        drawn = LIKELIHOODS[name](mean)
        model.register_rv(drawn, "y", observed=np.array([0, 1, 0, 1]))
    program = export_predictor(model, {"slope": np.zeros((1, 20))}, target="web", verify=False)
    assert program.page().description["runtime"]["engine"] == "tape"


def test_rows_along_an_axis_share_the_key_of_their_draws():
    posterior = {"level": np.full((1, 9, 3), 80.0), "slope": np.full((1, 9), 5.0)}
    program = export_predictor(heights(), posterior, row_id="row", target="web", verify=False)
    page = automatic_page(program.model, "model")
    assert page["predictor"]["row_id"] == "row"
    assert page["inputs"]["row"]["kind"] == "covariate"
    assert "row" not in {x["input"] for x in page["predictor"]["covariates"]}


@needs_chromium
def test_a_line_of_rows_with_one_key_has_no_noise(opened):
    posterior = {"level": np.full((1, 50, 3), 80.0), "slope": np.full((1, 50), 5.0)}
    program = export_predictor(heights(), posterior, row_id="row", target="web", verify=False)
    page = opened(program)
    path = page.locator("#outputs path.line").get_attribute("d")
    points = np.array([part.split() for part in path.replace("M", "L").split("L")[1:]], float)
    line = np.polyval(np.polyfit(*points.T, 1), points[:, 0])
    assert abs(points[:, 1] - line).max() < 0.2


@needs_chromium
@pytest.mark.parametrize("carries", [False, True])
def test_rows_that_depend_on_those_before_them_stay_in_their_order(opened, carries):
    spent = RNG.gamma(2, 1, 40).round(2)
    before = np.append(0, spent[:-1])
    seen = (2 * spent + (before if carries else 0)).round(2)
    with pm.Model() as model:
        week, tv = pm.Data("week", np.arange(40.0)), pm.Data("tv", spent)
        mean = pm.Normal("gain") * tv + 0 * week
        if carries:
            mean += pt.concatenate([[0.0], tv[:-1]])
        pm.Normal("sales", mean, 0.1, observed=seen, shape=mean.shape)
    posterior = {"gain": np.full((1, 20), 2.0)}
    program = export_predictor(model, posterior, row_id="row", target="web", verify=False)
    page = opened(program)
    page.get_by_text("Done.").wait_for()
    note = page.get_by_text("a row depends on those before it")
    assert note.is_visible() is carries
    choice = page.get_by_label("Along the axis", exact=True)
    chosen = choice.evaluate("(x) => x.selectedOptions[0].text")
    assert chosen == ("rows of a table" if carries else "week")
    plots = page.locator(".plot")
    assert plots.get_by_text("week").count() == 1
    assert plots.get_by_text("data").count() == 1


def test_units_stand_in_labels_and_indices_have_the_names_of_their_dimensions():
    posterior = {"level": np.zeros((1, 3, 3)), "slope": np.ones((1, 3))}
    units = {"age": "years", "height": "cm"}
    program = export_predictor(heights(), posterior, units=units, verify=False)
    page = automatic_page(program.model, "model")
    labels = {x["name"]: x["label"] for x in page["predictor"]["covariates"]}
    assert labels == {"age": "age (years)", "region_index": "region"}
    assert page["predictor"]["outputs"][0]["label"] == "height (cm)"


def test_a_variable_of_few_whole_values_has_categories():
    with pm.Model() as model:
        x = pm.Data("x", np.arange(12.0))
        chance = pm.math.sigmoid(pm.Normal("slope") * x)
        pm.Binomial("y", 2, chance, observed=np.arange(12) % 3, shape=chance.shape)
    program = export_predictor(model, {"slope": np.zeros((1, 20))}, verify=False)
    (output,) = automatic_page(program.model, "model")["predictor"]["outputs"]
    assert output["categories"] == [0, 1, 2]


@pytest.mark.slow
def test_a_sampler_has_quantiles_of_its_prior():
    program = export_sampler(heights(), prior_draws=2000, target="web", verify=False)
    views = automatic_page(program.model, "model")["outputs"]
    levels, [slope] = views["slope"]["prior"]["levels"], views["slope"]["prior"]["values"]
    expected = 5 + np.array([NormalDist().inv_cdf(level) for level in levels])
    assert len(views["level"]["prior"]["values"]) == 3
    np.testing.assert_allclose(slope[5:-5], expected[5:-5], atol=0.15)
    assert (
        "prior"
        not in automatic_page(export_sampler(heights(), verify=False).model, "m")["outputs"][
            "slope"
        ]
    )


def test_a_sampler_has_its_data_and_labels(sampler):
    page = automatic_page(sampler.model, "model")
    assert page["outputs"]["level"]["labels"] == NAMES
    assert page["inputs"]["region_index"]["labels"] == NAMES
    assert page["inputs"]["age"]["value"] == AGE.tolist()
    groups = {page["inputs"][name]["group"] for name in ("age", "region_index", "measured")}
    assert groups == {"40 rows"}


def test_a_page_of_particles_shows_the_draws_alone():
    page = automatic_page(export_smc(heights(), target="web", verify=False).model, "model")
    shown = {name for name, view in page["outputs"].items() if view["kind"] != "hidden"}
    assert shown == {"level", "slope"}


@pytest.mark.parametrize("export", [export_laplace, export_pathfinder, export_advi])
def test_an_approximation_shows_its_draws_and_how_near_they_are(export):
    page = automatic_page(export(heights(), target="web", verify=False).model, "model")
    kinds = {name: view["kind"] for name, view in page["outputs"].items()}
    assert kinds["level"] == kinds["slope"] == "posterior"
    assert kinds["pareto_k"] == "number"
    shown = {name for name, kind in kinds.items() if kind != "hidden"}
    assert shown <= {"level", "slope", "pareto_k", "log_marginal_likelihood", "elbo"}
    assert set(page["inputs"]) == {"seed", "draws", "age", "region_index", "measured"}


@needs_chromium
@pytest.mark.parametrize("export", [export_laplace, export_pathfinder])
def test_an_approximation_runs_in_its_page(opened, export):
    page = opened(export(heights(), target="web", verify=False))
    page.get_by_text("Done.").wait_for()
    assert page.get_by_role("img", name="Plot of level, ").is_visible()
    assert page.get_by_text("Pareto k").first.is_visible()


def test_a_density_has_the_names_of_its_point_and_no_made_up_data():
    page = automatic_page(export_logp(heights(), verify=False).model, "model")
    assert page["inputs"]["point"]["labels"] == ["level.1", "level.2", "level.3", "slope"]
    assert page["inputs"]["age"]["value"] == AGE.tolist()
    hidden = export_logp(heights(), share_data=False, verify=False).model
    assert automatic_page(hidden, "model")["inputs"]["age"]["value"] == []


def test_no_internal_name_is_a_title():
    x = pt.matrix("x")
    model = export_onnx([x], {"total": x.sum()}, verify=False).model
    assert automatic_page(model, "model")["title"] == "Total from x"
    assert automatic_page(model, "my_net")["title"] == "My net"


@pytest.mark.parametrize("metadata", ['{"sampler": {}}', '{"draws": 3, "outputs": {}}', "["])
def test_files_of_other_tools_with_such_metadata_have_a_page(metadata):
    x = ir.Value(name="x", shape=ir.Shape([3]), type=ir.TensorType(ir.DataType.FLOAT))
    model = ir.Model(ir.Graph([x], [x], nodes=[], name="main_graph"), ir_version=10)
    model.metadata_props["pymc"] = metadata
    assert automatic_page(model, "net")["title"]


def test_convergence_is_that_of_arviz():
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    chains = np.cumsum(RNG.normal(size=(4, 101)), axis=1) * 0.1 + RNG.normal(size=(4, 101))
    module = (files("pytensor_onnx.web") / "static" / "posterior.js").as_uri()
    script = (
        "globalThis.document = {};"
        f"const {{rhat, effective}} = await import({module!r});"
        f"const chains = {chains.tolist()};"
        "console.log(JSON.stringify([rhat(chains), effective(chains)]));"
    )
    command = ["node", "--input-type=module", "--no-warnings", "-e", script]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    stats = arviz_stats.base.array_stats
    expected = [stats.rhat(chains), stats.ess(chains, method="bulk")]
    np.testing.assert_allclose(found, np.array(expected, float).ravel(), rtol=1e-6)


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens the page of a program, whose console must say nothing."""
    said = []

    def open_page(program):
        needs_tapes()
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(program.page().save(tmp_path / "page.html").as_uri())
        page.get_by_text("Done.").wait_for()
        return page

    yield open_page
    assert not said


@needs_chromium
def test_a_predictor_opens_with_a_band_and_takes_rows(opened, predictor):
    page = opened(predictor)
    page.get_by_role("img", name="Plot of height").wait_for()
    assert page.get_by_text("94% of the predictions").is_visible()
    assert page.get_by_text("data of other groups").is_visible()
    page.get_by_label("Along the axis").select_option("region")
    page.get_by_role("img", name="of 3 rows").wait_for()
    page.get_by_label("Along the axis").select_option("rows of a table")
    page.get_by_label("Rows", exact=True).fill('age,region_index\n10,"south, west"\n12,west')
    page.get_by_text("Row 2: west is no value of region_index").wait_for()
    page.get_by_label("Rows", exact=True).fill('age,region_index\n10,"south, west"\n12,east')
    page.get_by_text("Done.").wait_for()
    cells = page.locator("#outputs table tr").nth(1).locator("td").all_inner_texts()
    assert cells[:2] == ["10", "south, west"]
    assert 120 < float(cells[2]) < 140


@needs_chromium
def test_a_sampler_draws_by_itself_and_refuses_nonsense(opened, sampler):
    page = opened(sampler)
    page.get_by_text("4 chains, 1000 draws").wait_for()
    assert page.get_by_role("img", name="Plot of level, ").is_visible()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Warm-up steps, value").fill("-3")
    page.get_by_text("Warm-up steps: give 0 or more").wait_for()
    assert page.get_by_label("Warm-up steps, value").get_attribute("aria-invalid") == "true"
    page.get_by_label("Warm-up steps, value").fill("200")
    page.get_by_text("Done.").wait_for()
    page.get_by_role("button", name="Draw more chains").click()
    page.get_by_text("8 chains, 2000 draws").wait_for()


@needs_chromium
def test_a_sampler_says_in_red_that_a_start_is_not_finite(opened):
    with pm.Model() as model:
        mean = pm.Normal("mean")
        pm.Normal("y", mean, 1, observed=pm.Data("seen", np.array([0.5, np.inf])))
    page = opened(export_sampler(model, target="web", verify=False, data="stored"))
    verdict = page.get_by_text("Chains 1, 2, 3, 4 start where the log-density or its gradient is")
    verdict.wait_for()
    red, green, blue = verdict.evaluate(
        "x => getComputedStyle(x).color.match(/[0-9]+/g).map(Number)"
    )
    assert red > 2 * max(green, blue)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["predictor", "sampler"])
def test_pages_are_accessible_and_fit_a_phone(browser, tmp_path, request, kind, scheme):
    needs_tapes()
    try:
        (axe,) = package_files(AXE)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    made = request.getfixturevalue(kind).page()
    page = browser.new_page(viewport={"width": 390, "height": 760}, color_scheme=scheme)
    page.goto(made.save(tmp_path / "page.html").as_uri())
    page.get_by_text("Done.").wait_for()
    for details in page.locator("details").all():
        details.evaluate("element => element.open = true")
    page.evaluate(axe.read_text(encoding="utf-8"))
    assert page.evaluate("axe.run()")["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("select, textarea, input").first.focus()
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "run":
            return page.close()
    pytest.fail("the keyboard does not reach the button")


@needs_chromium
def test_arrays_of_any_rank_start_with_an_example_and_take_files_of_numpy(opened, tmp_path):
    x = pt.tensor("window", shape=(None, None, 4), dtype="float32")
    page = opened(export_onnx([x], {"total": x.sum()}, target="web", verify=False))
    assert page.get_by_text("random numbers of sizes 10 x 10 x 4").is_visible()
    np.save(tmp_path / "x.npy", np.full((2, 3, 4), 0.5, "float32"))
    page.get_by_label("window, file").set_input_files(tmp_path / "x.npy")
    page.get_by_text("12", exact=True).wait_for()


def test_classes_of_a_softmax_are_the_first_five():
    x = pt.matrix("x", shape=(1, 100), dtype="float32")
    needs_tapes()
    model = export_onnx([x], {"classes": pt.special.softmax(x, axis=1)}, verify=False)
    (classes,) = model.page().description["outputs"]
    assert (classes["view"]["kind"], classes["view"]["top"]) == ("bars", 5)


@pytest.mark.slow
def test_a_model_of_bambi_has_a_page_of_its_formula():
    bambi = pytest.importorskip("bambi", reason="bambi is no dependency")
    import pandas as pd

    table = pd.DataFrame({"days": np.arange(12.0) % 4, "person": np.repeat(list("abc"), 4)})
    table["reaction"] = 250 + 10 * table["days"] + RNG.normal(0, 5, 12)
    needs_tapes()
    program = program_of(bambi.Model("reaction ~ days + (days | person)", table))
    shown = [name for name, x in views_of(program).items() if x["kind"] == "posterior"]
    assert {"1_person", "days_person", "days", "sigma"} <= set(shown)
    assert not any("offset" in name for name in shown)
    assert program.page().description["runtime"]["engine"] == "tape"


@pytest.mark.slow
def test_a_page_of_bambi_predicts_as_bambi_for_other_rows(opened):
    bambi = pytest.importorskip("bambi", reason="bambi is no dependency")
    import pandas as pd

    table = pd.DataFrame({"days": np.arange(24.0) % 4, "person": np.repeat(list("abc"), 8)})
    table["shift"] = ["early", "late", "night"] * 8
    table["reaction"] = 250 + 10 * table["days"] + RNG.normal(0, 5, 24)
    model = bambi.Model("reaction ~ days + shift + (days | person)", table, center_predictors=False)
    model.build()
    with model.backend.model:
        draws = sample(200, tune=300, chains=2, random_seed=1, progressbar=False)
    page = opened(program_of((model, draws)))
    page.get_by_text("Done.").wait_for()
    page.get_by_label("Along the axis", exact=True).select_option("rows of a table")
    rows = "days,person,shift\n2.5,b,night\n7,a,early\n0,c,late\n"
    page.get_by_label("Rows", exact=True).fill(rows)
    page.locator("#outputs[aria-busy=false]").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download results").click()
    found = pd.read_csv(saved.value.path())["reaction: mean"]
    others = pd.read_csv(io.StringIO(rows))
    told = model.predict(draws, data=others, inplace=False).posterior["mu"]
    np.testing.assert_allclose(found, told.mean(["chain", "draw"]), atol=1.5)


def views_of(program):
    return automatic_page(program.model, "model")["outputs"]
