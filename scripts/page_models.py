"""Models of pages that nobody described: six of PyMC users, three networks of packages, others."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pytensor_onnx.pymc as po
from pytensor_onnx import ONNXProgram, export_onnx, export_training_step, from_onnx
from scripts.page_detector import export_detector, trained_detector
from scripts.real_files import FACE, MAGIKA, MAGIKA_CONFIG, SILERO

MODELS: dict[str, Callable[[], Any]] = {}
COUNTIES = ["Aitkin", "Anoka", "Becker", "Beltrami", "Benton", "Big Stone"]
SCHOOLS = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrenceville", "St. Paul's"]
EFFECTS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
ERRORS = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
FACE_SIDE, FACE_BOX = 48, (140, 120, 350, 330)


@dataclass(frozen=True)
class RealPage:
    """A file of a package, and what its page needs beside it."""

    file: Path
    configuration: dict[str, Any]


def model(make: Callable[[], Any]) -> Callable[[], Any]:
    """Register a model by the name of its function."""
    MODELS[make.__name__] = make
    return make


def _fitted(built: pm.Model) -> tuple[pm.Model, Any]:
    """Return a model with draws of its posterior, whose page predicts."""
    with built:
        return built, po.sample(500, tune=500, chains=2, random_seed=1, progressbar=False)


@model
def radon() -> tuple[pm.Model, Any]:
    """Radon in houses by county, floor and uranium: a hierarchical regression."""
    rng = np.random.default_rng(0)
    county, floor = rng.integers(0, len(COUNTIES), 300), rng.integers(0, 2, 300)
    uranium = np.round(rng.normal(size=300) * 0.3, 2)
    levels = rng.normal(1.3, 0.3, len(COUNTIES))
    measured = levels[county] - 0.6 * floor + 0.5 * uranium + rng.normal(0, 0.6, 300)
    coords = {"county": COUNTIES, "floor": ["basement", "ground floor"]}
    with pm.Model(coords=coords) as built:
        counties, floors = pm.Data("county_of_house", county), pm.Data("floor_of_house", floor)
        grown = pm.Data("uranium", uranium)
        center, spread = pm.Normal("center", 0, 2), pm.HalfNormal("spread", 1)
        level = pm.Normal("level", center, spread, dims="county")
        on_floor = pm.Normal("on_floor", dims="floor")
        mean = level[counties] + on_floor[floors] + pm.Normal("slope") * grown
        noise = pm.HalfNormal("noise", 1)
        pm.Normal("log_radon", mean, noise, observed=measured, shape=mean.shape)
    return _fitted(built)


@model
def counts() -> tuple[pm.Model, Any]:
    """Zero-inflated counts of birds by temperature and place."""
    rng = np.random.default_rng(17)
    temperature, place = rng.uniform(-5, 30, 400).round(1), rng.integers(0, 4, 400)
    expected = np.exp(1.2 + 0.04 * temperature + np.array([-0.4, 0, 0.3, 0.6])[place])
    seen = np.where(rng.uniform(size=400) < 0.3, 0, rng.negative_binomial(3, 3 / (3 + expected)))
    with pm.Model(coords={"place": ["forest", "lake", "meadow", "village"]}) as built:
        warmth, places = pm.Data("temperature", temperature), pm.Data("place_index", place)
        level = pm.Normal("level", 1, 1, dims="place")
        mean = pm.math.exp(level[places] + pm.Normal("slope", 0, 0.1) * warmth)
        absent, alpha = pm.Beta("absent", 2, 2), pm.Exponential("alpha", 0.5)
        pm.ZeroInflatedNegativeBinomial(
            "birds", psi=1 - absent, mu=mean, alpha=alpha, observed=seen, shape=mean.shape
        )
    return _fitted(built)


@model
def ordinal() -> tuple[pm.Model, Any]:
    """Grades of a survey by minutes of waiting: ordered logistic."""
    rng = np.random.default_rng(3)
    minutes = rng.uniform(0, 40, 500).round()
    latent = 2.5 - 0.11 * minutes + rng.logistic(size=500)
    grade = np.digitize(latent, [-2.0, -0.5, 1.0, 2.5])
    with pm.Model() as built:
        waiting = pm.Data("minutes", minutes)
        cuts = pm.Normal(
            "cuts",
            0,
            3,
            shape=4,
            initval=[-2, -1, 1, 2],
            transform=pm.distributions.transforms.ordered,
        )
        eta = pm.Normal("slope", 0, 0.3) * waiting
        pm.OrderedLogistic("grade", eta, cuts, observed=grade, shape=eta.shape, compute_p=False)
    return _fitted(built)


@model
def curve() -> tuple[pm.Model, Any]:
    """A curve through points by a Gaussian process (HSGP) with heavy tails."""
    rng = np.random.default_rng(8)
    x = np.sort(rng.uniform(0, 10, 150)).round(2)
    y = np.sin(x) + rng.standard_t(5, 150) * 0.3
    with pm.Model() as built:
        day = pm.Data("day", x)
        length, scale = pm.LogNormal("length", 0, 0.5), pm.Exponential("scale", 1)
        covariance = scale**2 * pm.gp.cov.Matern52(1, length)
        process = pm.gp.HSGP(m=[25], c=1.5, cov_func=covariance)
        # Centred on the data that were fitted, wherever the curve is predicted.
        basis, root = process.prior_linearized(day[:, None] - 5.0)
        weights = pm.Normal("weights", size=process.n_basis_vectors)
        level = basis @ (weights * root)
        nu, noise = pm.Gamma("nu", 2, 0.1), pm.HalfNormal("noise", 1)
        pm.StudentT("sea_level", nu=nu, mu=level, sigma=noise, observed=y, shape=level.shape)
    return _fitted(built)


@model
def sleep() -> tuple[pm.Model, Any]:
    """Reaction by days without sleep, by subject: `Reaction ~ Days + (Days | Subject)` of Bambi."""
    rng = np.random.default_rng(22)
    days, subject = np.tile(np.arange(10.0), 18), np.repeat(np.arange(18), 10)
    own = rng.normal(0, [25, 6], (18, 2))
    reaction = 250 + 10 * days + own[subject, 0] + own[subject, 1] * days + rng.normal(0, 25, 180)
    with pm.Model(coords={"Subject": [f"person {i}" for i in range(1, 19)]}) as built:
        given, of = pm.Data("Days", days), pm.Data("Subject_index", subject)
        intercept, slope = pm.Normal("Intercept", 250, 50), pm.Normal("slope", 0, 20)
        spread = [pm.HalfNormal("1|Subject_sigma", 50), pm.HalfNormal("Days|Subject_sigma", 20)]
        base = pm.Normal("1|Subject_offset", dims="Subject") * spread[0]
        by_day = pm.Normal("Days|Subject_offset", dims="Subject") * spread[1]
        mean = intercept + base[of] + (slope + by_day[of]) * given
        noise = pm.HalfNormal("sigma", 50)
        pm.Normal("Reaction", mean, noise, observed=reaction.round(1), shape=mean.shape)
    return _fitted(built)


@model
def survival() -> pm.Model:
    """Times until failure, some of them censored at 30 months: Weibull."""
    rng = np.random.default_rng(5)
    months = np.minimum(20 * rng.weibull(1.6, 40), 30).round(1)
    with pm.Model() as built:
        seen = pm.Data("months", months)
        shape, scale = pm.Gamma("shape", 4, 2), pm.HalfNormal("scale", 40)
        lifetime = pm.Weibull.dist(shape, scale)
        pm.Deterministic("median_lifetime", scale * np.log(2) ** (1 / shape))
        pm.Censored("failure", lifetime, lower=None, upper=30.0, observed=seen, shape=seen.shape)
    return built


@model
def schools() -> ONNXProgram:
    """Effects of coaching in eight schools: a sampler with a vector of parameters."""
    with pm.Model(coords={"school": [*SCHOOLS, "Mt. Hermon"]}) as built:
        effects = pm.Data("effects", EFFECTS, dims="school")
        mu, tau = pm.Normal("mu", 0, 10), pm.HalfCauchy("tau", 5)
        offset = pm.Normal("offset", dims="school")
        theta = pm.Deterministic("theta", mu + tau * offset, dims="school")
        pm.Normal("measured", theta, ERRORS, observed=effects, dims="school")
    return po.export_sampler(
        built, variables=["mu", "tau", "theta"], prior_draws=4000, target="web", verify=False
    )


@model
def density() -> ONNXProgram:
    """The log-density of two parameters, with its gradient."""
    with pm.Model() as built:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 10)
        pm.Normal("y", mu, sigma, observed=pm.Data("y_data", EFFECTS))
    return po.export_logp(built, target="web", verify=False)


@model
def training() -> ONNXProgram:
    """A step of training of a network that learns a curve."""
    from pytensor_ml.optim import adam

    rng = np.random.default_rng(0)
    sizes = [(1, 24), (24,), (24, 24), (24,), (24, 1), (1,)]
    start = [rng.normal(size=s) / np.sqrt(s[0] if len(s) == 2 else 1) for s in sizes]
    names = [f"{kind}{i}" for i in (1, 2, 3) for kind in ("weights", "bias")]
    weights = [
        pytensor.shared(x.astype("float32"), name=name)
        for name, x in zip(names, start, strict=True)
    ]
    x, y = pt.vector("x", dtype="float32"), pt.vector("y", dtype="float32")
    hidden = x[:, None]
    for i in (0, 2):
        hidden = pt.tanh(hidden @ weights[i] + weights[i + 1])
    fitted = (hidden @ weights[4] + weights[5])[:, 0]
    fitted.name = "fitted"
    loss = pt.mean((fitted - y) ** 2)
    points = rng.uniform(-3, 3, 60).round(2)
    wave = (np.sin(2 * points) + points / 3 + rng.normal(0, 0.15, 60)).round(2)
    return export_training_step(
        loss,
        weights,
        adam,
        inputs=[x, y],
        extra_outputs=[fitted],
        example_inputs=[points.astype("float32"), wave.astype("float32"), np.float32(0.005)],
        target="web",
        verify=False,
    )


@model
def detector() -> ONNXProgram:
    """Find discs, squares and triangles by a network that is trained here."""
    return export_detector(trained_detector())


@model
def digits() -> ONNXProgram:
    """A network that recognises digits."""

    from pytensor_onnx.cli.demo import build_network, load_digits, train

    with pytensor.config.change_flags(floatX="float32"):
        pixels, network = build_network(64, 0)
        train(network, load_digits(), epochs=40, seed=0, on_epoch=lambda epoch, loss: None)
        probabilities = pt.special.softmax(network.y, axis=-1)
        return export_onnx(
            [pixels],
            {"digit": probabilities},
            dynamic_axes={"pixels": {0: "batch"}},
            target="web",
            verify=False,
        )


@model
def file_types() -> RealPage:
    """The kind of a file, by Google's Magika and the configuration in its package."""
    facts = json.loads(MAGIKA_CONFIG.path().read_text())
    return RealPage(MAGIKA.path(), {"title": "Which kind of file is this?", **facts})


@model
def speech() -> RealPage:
    """Whether somebody speaks in a sound, by Silero's detector of voices."""
    facts = {"names": ["speech"], "sample_rate": 16_000, "window": 576, "hop": 512}
    return RealPage(SILERO.path(), {"title": "Is somebody speaking?", **facts})


@model
def face() -> ONNXProgram:
    """Eyes, nose and mouth of a face, by the last network of MTCNN."""
    image = pt.tensor("image", shape=(1, FACE_SIDE, FACE_SIDE, 3), dtype="float32")
    # The network takes colours from -1 to 1, and the width before the height.
    taken = ((255 * image - 127.5) / 128).astype("float32").transpose(0, 2, 1, 3)
    _, places, shares = from_onnx(FACE.path(), inputs={"input_3": taken}).outputs
    program = export_onnx(
        [image],
        {"key_points": places, "probability": shares},
        example_inputs=[portrait()],
        target="web",
        verify=False,
    )
    program.model.graph.name = "Eyes, nose and mouth of a face"
    program.model.metadata_props["names"] = json.dumps(["no face", "a face"])
    corners = [f"{side} corner of the mouth" for side in ("left", "right")]
    program.model.metadata_props["keypoints"] = json.dumps(
        ["left eye", "right eye", "nose", *corners]
    )
    return program


def portrait() -> np.ndarray:
    """Return the face of Grace Hopper, of a picture of the US Navy that Matplotlib has."""
    from matplotlib.cbook import get_sample_data
    from PIL import Image

    with get_sample_data("grace_hopper.jpg") as opened:
        picture = Image.open(opened).convert("RGB").crop(FACE_BOX)
    small = picture.resize((FACE_SIDE, FACE_SIDE), Image.Resampling.BOX)
    return (np.asarray(small, "float32") / 255).round(3)[None]
