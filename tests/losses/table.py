"""Losses as users write them.

A loss is a function; the name of an argument says what it stands for and which samples it takes
(`SAMPLES`). To extend the table, write one more function.
"""

from collections.abc import Callable
from inspect import signature
from itertools import product

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import special

Loss = Callable[..., Variable]
LOSSES: dict[str, Loss] = {}

LOGITS = (-1000, -745, -200, -100, -40, -36, -20, -1, 0, 0.5, 20, 30, 37, 40, 89, 100, 710, 1000)
PROBABILITIES = (0, 1e-30, 1e-9, 0.25, 0.5, 1 - 1e-6, 1)
SAMPLES: dict[str, tuple[float, ...]] = {
    "logit": LOGITS,
    "other_logit": (-1000, -40, -0.3, 0, 2, 40, 1000),
    "probability": PROBABILITIES,
    "other_probability": PROBABILITIES,
    "target": (0, 0.3, 1),
    "sign": (-1, 1),
    "count": (0, 1, 7),
    "residual": (-1e6, -800, -1, -1e-9, 0, 1e-4, 0.5, 1, 3, 30, 800, 1e6),
    "positive": (1e-6, 0.7, 1, 1e6),
    "scale": (1e-3, 1, 50),
    "log_scale": (-50, -1, 0, 2, 40),
}
"""Numbers of the arguments of elementwise losses, which are given all their combinations."""

ROWS = (
    (0.5, -1, 2, 0.25),
    (1000, 0, -1000, 3),
    (-1000, -1000, -1000, -1000),
    (40, -40, 0, 1),
    (1000, 1000, 999, -5),
    (0, 0, 0, 0),
    (-745, 710, 89, 104),
)
ONE_HOT = np.eye(4)
MATRICES = {
    "logits": np.repeat(ROWS, 5, axis=0),
    "other_logits": np.repeat(np.roll(ROWS, 1, axis=0), 5, axis=0),
    "targets": np.tile([*ONE_HOT, (0.1, 0.2, 0.3, 0.4)], (len(ROWS), 1)),
    "labels": np.tile([0, 1, 2, 3, 1], len(ROWS)),
    "mask": np.tile([(1, 1, 1, 1), (1, 0, 1, 1), (0, 0, 1, 1), (1, 1, 1, 0), (1, 1, 0, 0)], (7, 1)),
}
"""Numbers of the arguments of losses of rows, the same in number for each."""

CONSTANT = {"target", "sign", "count", "targets", "labels", "mask"}
"""Arguments without a gradient."""


def loss[F: Loss](function: F) -> F:
    """Add a loss to the table."""
    LOSSES[function.__name__] = function
    return function


def arguments_of(function: Loss, dtype: str) -> list[Variable]:
    """Return variables for the arguments of a loss."""
    return [_variable(name, dtype) for name in signature(function).parameters]


def _variable(name: str, dtype: str) -> Variable:
    if name == "labels":
        return pt.lvector(name)
    return pt.vector(name, dtype=dtype) if name in SAMPLES else pt.matrix(name, dtype=dtype)


def samples_of(function: Loss, dtype: str) -> list[np.ndarray]:
    """Return the numbers of the arguments of a loss."""
    names = list(signature(function).parameters)
    if names[0] in SAMPLES:
        columns = zip(*product(*(SAMPLES[name] for name in names)), strict=True)
        return [np.array(column, dtype) for column in columns]
    return [MATRICES[n].astype("int64" if n == "labels" else dtype) for n in names]


# Binary cross-entropies of logits.


@loss
def cross_entropy_log1p(logit, target):
    p = pt.sigmoid(logit)
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def cross_entropy_log(logit, target):
    p = pt.sigmoid(logit)
    return -(target * pt.log(p) + (1 - target) * pt.log(1 - p))


@loss
def cross_entropy_difference(logit, target):
    p = pt.sigmoid(logit)
    return -target * pt.log(p) - (1.0 - target) * pt.log(1.0 - p)


@loss
def cross_entropy_reversed(logit, target):
    p = pt.sigmoid(logit)
    return (target - 1) * pt.log1p(-p) - pt.log(p) * target


@loss
def cross_entropy_xlogy(logit, target):
    p = pt.sigmoid(logit)
    return -(special.xlogy(target, p) + special.xlog1py(1 - target, -p))


@loss
def cross_entropy_of_quotient(logit, target):
    p = 1 / (1 + pt.exp(-logit))
    return -(target * pt.log(p) + (1 - target) * pt.log(1 - p))


@loss
def cross_entropy_of_odds(logit, target):
    p = pt.exp(logit) / (1 + pt.exp(logit))
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def cross_entropy_of_tanh(logit, target):
    p = 0.5 * (pt.tanh(logit / 2) + 1)
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def cross_entropy_by_switch(logit, target):
    p = pt.sigmoid(logit)
    return -pt.switch(pt.gt(target, 0.5), pt.log(p), pt.log1p(-p))


@loss
def cross_entropy_of_chosen_probability(logit, target):
    p = pt.sigmoid(logit)
    return -pt.log(pt.switch(pt.eq(target, 1), p, 1 - p))


@loss
def cross_entropy_of_mixed_probability(logit, target):
    p = pt.sigmoid(logit)
    return -pt.log(target * p + (1 - target) * (1 - p))


@loss
def cross_entropy_with_epsilon(logit, target):
    p = pt.sigmoid(logit)
    return -(target * pt.log(p + 1e-7) + (1 - target) * pt.log(1 - p + 1e-7))


@loss
def cross_entropy_clipped(logit, target):
    p = pt.clip(pt.sigmoid(logit), 1e-7, 1 - 1e-7)
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def cross_entropy_smoothed(logit, target):
    p, smooth = pt.sigmoid(logit), target * 0.9 + 0.05
    return -(smooth * pt.log(p) + (1 - smooth) * pt.log1p(-p))


@loss
def cross_entropy_weighted(logit, target, positive):
    p = pt.sigmoid(logit)
    return -(positive * target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def cross_entropy_softplus(logit, target):
    return pt.softplus(logit) - logit * target


@loss
def cross_entropy_two_softplus(logit, target):
    return target * pt.softplus(-logit) + (1 - target) * pt.softplus(logit)


@loss
def cross_entropy_log1p_exp(logit, target):
    return pt.maximum(logit, 0) - logit * target + pt.log1p(pt.exp(-abs(logit)))


@loss
def cross_entropy_logaddexp(logit, target):
    return pt.logaddexp(0, logit) - target * logit


@loss
def cross_entropy_log1p_exp_plain(logit, target):
    return pt.log1p(pt.exp(logit)) - target * logit


@loss
def cross_entropy_log_1_plus_exp(logit, target):
    return pt.log(1 + pt.exp(logit)) - target * logit


@loss
def logistic_of_margin(logit, sign):
    return pt.log1p(pt.exp(-sign * logit))


@loss
def log_sigmoid_of_margin(logit, sign):
    return -pt.log(pt.sigmoid(sign * logit))


@loss
def log_sigmoid_of_difference(logit, other_logit):
    return -pt.log(pt.sigmoid(logit - other_logit))


@loss
def cloglog(logit, target):
    p = 1 - pt.exp(-pt.exp(logit))
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def ordinal(other_logit, positive):
    return -pt.log(pt.sigmoid(positive - other_logit) - pt.sigmoid(-positive - other_logit))


# Binary cross-entropies of probabilities.


@loss
def probability_log1p(probability, target):
    return -(target * pt.log(probability) + (1 - target) * pt.log1p(-probability))


@loss
def probability_log(probability, target):
    return -(target * pt.log(probability) + (1 - target) * pt.log(1 - probability))


@loss
def probability_xlogy(probability, target):
    terms = special.xlogy(target, probability), special.xlog1py(1 - target, -probability)
    return -(terms[0] + terms[1])


@loss
def probability_by_switch(probability, target):
    return -pt.switch(target, pt.log(probability), pt.log1p(-probability))


@loss
def probability_guarded(probability, target):
    safe = pt.switch(pt.eq(probability, 0), 1, probability)
    return -target * pt.log(safe)


@loss
def probability_clipped(probability, target):
    p = pt.clip(probability, 1e-7, 1 - 1e-7)
    return -(target * pt.log(p) + (1 - target) * pt.log1p(-p))


@loss
def probability_of_log_odds(probability, target):
    logit = pt.log(probability / (1 - probability))
    return pt.softplus(logit) - target * logit


@loss
def brier(logit, target):
    return pt.sqr(pt.sigmoid(logit) - target)


# Focal losses.


@loss
def focal(logit, target):
    p = pt.sigmoid(logit)
    chosen = target * p + (1 - target) * (1 - p)
    return -((1 - chosen) ** 2) * pt.log(chosen)


@loss
def focal_two_terms(logit, target):
    p = pt.sigmoid(logit)
    positives = 0.25 * target * (1 - p) ** 2 * pt.log(p)
    return -positives - 0.75 * (1 - target) * p**2 * pt.log(1 - p)


@loss
def focal_by_switch(logit, target):
    p = pt.sigmoid(logit)
    chosen = pt.switch(pt.eq(target, 1), p, 1 - p)
    return -((1 - chosen) ** 1.5) * pt.log(chosen)


@loss
def focal_of_softplus(logit, target):
    p = pt.sigmoid(logit)
    entropy = pt.softplus(logit) - logit * target
    return (p + target - 2 * p * target) ** 2 * entropy


@loss
def asymmetric(logit, target):
    p = pt.sigmoid(logit)
    q = pt.minimum(1 - p + 0.05, 1)
    return -(target * (1 - p) * pt.log(p) + (1 - target) * (1 - q) ** 4 * pt.log(q))


# Margins.


@loss
def hinge(logit, sign):
    return pt.maximum(0, 1 - sign * logit)


@loss
def squared_hinge(logit, target):
    return pt.sqr(pt.maximum(1 - (2 * target - 1) * logit, 0))


@loss
def smooth_hinge(logit, sign):
    margin = sign * logit
    return pt.switch(margin <= 0, 0.5 - margin, pt.switch(margin < 1, (1 - margin) ** 2 / 2, 0))


@loss
def modified_huber(logit, sign):
    margin = sign * logit
    return pt.switch(margin < -1, -4 * margin, pt.maximum(0, 1 - margin) ** 2)


@loss
def exponential_margin(logit, sign):
    return pt.exp(-sign * logit)


@loss
def savage(logit, sign):
    return 1 / (1 + pt.exp(sign * logit)) ** 2


@loss
def triplet(logit, other_logit):
    return pt.maximum(0, pt.sqrt(logit**2 + 1e-12) - pt.sqrt(other_logit**2 + 1e-12) + 1)


@loss
def contrastive(residual, target):
    distance = abs(residual)
    return target * distance**2 + (1 - target) * pt.maximum(1 - distance, 0) ** 2


# Regressions.


@loss
def huber(residual):
    size = abs(residual)
    return pt.switch(size <= 1.5, 0.5 * residual**2, 1.5 * (size - 0.75))


@loss
def huber_by_minimum(residual):
    size = abs(residual)
    quadratic = pt.minimum(size, 1.5)
    return 0.5 * quadratic**2 + 1.5 * (size - quadratic)


@loss
def pseudo_huber(residual):
    return 4 * (pt.sqrt(1 + (residual / 2) ** 2) - 1)


@loss
def smooth_magnitude(residual):
    return pt.sqrt(residual**2)


@loss
def log_cosh(residual):
    return pt.log(pt.cosh(residual))


@loss
def log_cosh_stable(residual):
    return residual + pt.softplus(-2 * residual) - np.log(2)


@loss
def cauchy(residual, scale):
    return pt.log1p((residual / scale) ** 2)


@loss
def cauchy_log(residual, scale):
    return pt.log(scale) + pt.log(1 + (residual / scale) ** 2)


@loss
def student_t(residual, scale, positive):
    return pt.log(scale) + (positive + 1) / 2 * pt.log1p((residual / scale) ** 2 / positive)


@loss
def welsch(residual, scale):
    return 1 - pt.exp(-0.5 * (residual / scale) ** 2)


@loss
def geman_mcclure(residual):
    return residual**2 / (residual**2 + 4)


@loss
def quantile(residual):
    return pt.maximum(0.9 * residual, (0.9 - 1) * residual)


@loss
def expectile(residual):
    return abs(0.9 - pt.lt(residual, 0)) * residual**2


@loss
def absolute_percentage(residual, positive):
    return abs((positive - residual) / positive)


@loss
def logarithmic(positive, count):
    return (pt.log1p(positive) - pt.log1p(count)) ** 2


@loss
def gaussian(residual, scale):
    return 0.5 * (residual / scale) ** 2 + pt.log(scale)


@loss
def gaussian_of_density(residual, scale):
    return -pt.log(pt.exp(-0.5 * (residual / scale) ** 2) / (scale * np.sqrt(2 * np.pi)))


@loss
def gaussian_log_variance(residual, log_scale):
    return 0.5 * (log_scale + residual**2 / pt.exp(log_scale))


@loss
def gaussian_softplus_scale(residual, logit):
    scale = pt.softplus(logit) + 1e-4
    return 0.5 * pt.sqr(residual / scale) + pt.log(scale)


@loss
def laplace(residual, log_scale):
    return abs(residual) / pt.exp(log_scale) + log_scale + np.log(2)


@loss
def logistic(residual, scale):
    z = residual / scale
    return z + pt.log(scale) + 2 * pt.log1p(pt.exp(-z))


@loss
def gumbel(residual, scale):
    z = residual / scale
    return z + pt.exp(-z) + pt.log(scale)


@loss
def log_normal(positive, log_scale):
    return pt.log(positive) + log_scale + 0.5 * (pt.log(positive) / pt.exp(log_scale)) ** 2


# Counts and positive numbers.


@loss
def poisson(logit, count):
    return pt.exp(logit) - count * logit


@loss
def poisson_of_rate(positive, count):
    return positive - count * pt.log(positive)


@loss
def poisson_log_of_exp(logit, count):
    rate = pt.exp(logit)
    return rate - count * pt.log(rate)


@loss
def poisson_softplus(logit, count):
    rate = pt.softplus(logit)
    return rate - count * pt.log(rate)


@loss
def poisson_deviance(positive, count):
    return 2 * (special.xlogy(count, count / positive) - (count - positive))


@loss
def zero_inflated_poisson(logit, other_logit, count):
    p, rate = pt.sigmoid(other_logit), pt.exp(logit)
    none = pt.log(p + (1 - p) * pt.exp(-rate))
    return -pt.switch(pt.eq(count, 0), none, pt.log1p(-p) + count * logit - rate)


@loss
def negative_binomial(positive, scale, count):
    total = positive + scale
    return -count * pt.log(positive / total) - scale * pt.log(scale / total)


@loss
def negative_binomial_of_logit(logit, scale, count):
    p = pt.sigmoid(logit)
    return -(count * pt.log(p) + scale * pt.log1p(-p))


@loss
def negative_binomial_of_log_rate(logit, scale, count):
    rate = pt.exp(logit)
    return (count + scale) * pt.log(scale + rate) - count * pt.log(rate) - scale * pt.log(scale)


@loss
def geometric(logit, count):
    p = pt.sigmoid(logit)
    return -(count * pt.log(1 - p) + pt.log(p))


@loss
def exponential(positive, logit):
    return positive * pt.exp(-logit) + logit


@loss
def gamma_deviance(positive, scale):
    return -pt.log(positive / scale) + (positive - scale) / scale


@loss
def gamma_of_log_mean(positive, logit):
    mean = pt.exp(logit)
    return positive / mean + pt.log(mean)


@loss
def inverse_gaussian_deviance(positive, scale):
    return (positive - scale) ** 2 / (scale**2 * positive)


@loss
def tweedie(logit, count):
    return -count * pt.exp(-0.5 * logit) / -0.5 + pt.exp(0.5 * logit) / 0.5


@loss
def tweedie_of_mean(positive, count):
    return -count * positive ** (1 - 1.3) / (1 - 1.3) + positive ** (2 - 1.3) / (2 - 1.3)


@loss
def weibull(positive, scale, log_scale):
    shape = pt.exp(log_scale / 20)
    ratio = positive / scale
    return -pt.log(shape / scale * ratio ** (shape - 1) * pt.exp(-(ratio**shape)))


@loss
def beta_kernel(probability, positive, scale):
    return -((positive - 1) * pt.log(probability) + (scale - 1) * pt.log1p(-probability))


@loss
def beta_kernel_of_logit(logit, positive, scale):
    p = pt.sigmoid(logit)
    return -((positive - 1) * pt.log(p) + (scale - 1) * pt.log1p(-p)) - pt.log(p * (1 - p))


@loss
def kumaraswamy(probability, positive, scale):
    survival = pt.log1p(-(probability**positive))
    log_kernel = (positive - 1) * pt.log(probability) + (scale - 1) * survival
    return -(pt.log(positive) + pt.log(scale) + log_kernel)


# Divergences and entropies.


@loss
def gaussian_divergence(residual, log_scale):
    return -0.5 * (1 + log_scale - residual**2 - pt.exp(log_scale))


@loss
def gaussian_divergence_of_scales(residual, scale, positive):
    squares = scale**2 + residual**2
    return pt.log(positive / scale) + squares / (2 * positive**2) - 0.5


@loss
def bernoulli_divergence(logit, other_logit):
    p, q = pt.sigmoid(logit), pt.sigmoid(other_logit)
    return p * pt.log(p / q) + (1 - p) * pt.log((1 - p) / (1 - q))


@loss
def bernoulli_divergence_of_logs(logit, other_logit):
    p, q = pt.sigmoid(logit), pt.sigmoid(other_logit)
    return p * (pt.log(p) - pt.log(q)) + (1 - p) * (pt.log1p(-p) - pt.log1p(-q))


@loss
def bernoulli_divergence_of_probabilities(probability, other_probability):
    ratio = pt.log(probability / other_probability)
    other = pt.log((1 - probability) / (1 - other_probability))
    return probability * ratio + (1 - probability) * other


@loss
def bernoulli_divergence_from_a_number(logit):
    p = pt.sigmoid(logit)
    return 0.05 * pt.log(0.05 / p) + 0.95 * pt.log(0.95 / (1 - p))


@loss
def bernoulli_entropy(logit):
    p = pt.sigmoid(logit)
    return -(p * pt.log(p) + (1 - p) * pt.log1p(-p))


@loss
def bernoulli_entropy_of_probability(probability):
    rest = 1 - probability
    return -special.xlogy(probability, probability) - special.xlogy(rest, rest)


@loss
def generator_of_adversaries(logit, other_logit):
    real, fake = pt.sigmoid(logit), pt.sigmoid(other_logit)
    return -(pt.log(real) + pt.log(1 - fake))


@loss
def jensen_shannon(logit, other_logit):
    p, q = pt.sigmoid(logit), pt.sigmoid(other_logit)
    middle = (p + q) / 2
    return p * pt.log(p / middle) + q * pt.log(q / middle)


@loss
def concrete_density(logit, other_logit):
    noise = logit - other_logit
    return noise + 2 * pt.log1p(pt.exp(-noise))


# Losses of rows.


@loss
def categorical(logits, targets):
    return -(targets * pt.log(special.softmax(logits, axis=1))).sum(axis=1)


@loss
def categorical_xlogy(logits, targets):
    return -special.xlogy(targets, special.softmax(logits, axis=-1)).sum(axis=-1)


@loss
def categorical_of_log_softmax(logits, targets):
    return -(targets * special.log_softmax(logits, axis=1)).sum(axis=1)


@loss
def categorical_by_hand(logits, targets):
    shifted = logits - logits.max(axis=1, keepdims=True)
    p = pt.exp(shifted) / pt.exp(shifted).sum(axis=1, keepdims=True)
    return -(targets * pt.log(p)).sum(axis=1)


@loss
def categorical_without_shift(logits, targets):
    p = pt.exp(logits) / pt.exp(logits).sum(axis=1, keepdims=True)
    return -(targets * pt.log(p)).sum(axis=1)


@loss
def categorical_logsumexp(logits, targets):
    return pt.logsumexp(logits, axis=1) - (targets * logits).sum(axis=1)


@loss
def categorical_logsumexp_by_hand(logits, targets):
    log_total = pt.log(pt.exp(logits).sum(axis=1, keepdims=True))
    return -((logits - log_total) * targets).sum(axis=1)


@loss
def log_softmax_by_hand(logits, targets):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return -(targets * (shifted - pt.log(pt.exp(shifted).sum(-1, keepdims=True)))).sum(-1)


@loss
def categorical_of_labels(logits, labels):
    return -pt.log(special.softmax(logits, axis=1)[pt.arange(labels.shape[0]), labels])


@loss
def categorical_log_softmax_of_labels(logits, labels):
    return -special.log_softmax(logits, axis=1)[pt.arange(labels.shape[0]), labels]


@loss
def categorical_logsumexp_of_labels(logits, labels):
    return pt.logsumexp(logits, axis=1) - logits[pt.arange(labels.shape[0]), labels]


@loss
def categorical_with_epsilon(logits, targets):
    return -(targets * pt.log(special.softmax(logits, axis=1) + 1e-8)).sum(axis=1)


@loss
def categorical_clipped(logits, targets):
    return -(targets * pt.log(pt.clip(special.softmax(logits, axis=1), 1e-7, 1))).sum(axis=1)


@loss
def categorical_smoothed(logits, targets):
    smooth = targets * (1 - 0.1) + 0.1 / targets.shape[1]
    return -(smooth * pt.log(special.softmax(logits, axis=1))).sum(axis=1)


@loss
def categorical_of_odds(logits, targets):
    odds = pt.softplus(logits) + 1e-3
    return -(targets * pt.log(odds / odds.sum(axis=1, keepdims=True))).sum(axis=1)


@loss
def categorical_masked(logits, targets, mask):
    chosen = pt.switch(pt.eq(mask, 1), logits, -1e9)
    return -(targets * mask * special.log_softmax(chosen, axis=1)).sum(axis=1)


@loss
def softmax_masked_by_infinity(logits, mask):
    chosen = pt.switch(mask, logits, -np.inf)
    return pt.sqr(special.softmax(chosen, axis=1)).sum(axis=1)


@loss
def categorical_focal(logits, labels):
    p = special.softmax(logits, axis=1)[pt.arange(labels.shape[0]), labels]
    return -((1 - p) ** 2) * pt.log(p)


@loss
def categorical_entropy(logits):
    p = special.softmax(logits, axis=1)
    return -(p * pt.log(p)).sum(axis=1)


@loss
def categorical_entropy_of_log_softmax(logits):
    log_p = special.log_softmax(logits, axis=1)
    return -(pt.exp(log_p) * log_p).sum(axis=1)


@loss
def categorical_divergence(logits, other_logits):
    p, q = special.softmax(logits, axis=1), special.softmax(other_logits, axis=1)
    return (p * (pt.log(p) - pt.log(q))).sum(axis=1)


@loss
def categorical_divergence_of_quotient(logits, other_logits):
    p, q = special.softmax(logits, axis=1), special.softmax(other_logits, axis=1)
    return (p * pt.log(p / q)).sum(axis=1)


@loss
def distillation(logits, other_logits):
    p = special.softmax(other_logits / 4.0, axis=1)
    return -16.0 * (p * special.log_softmax(logits / 4.0, axis=1)).sum(axis=1)


@loss
def logsumexp_of_gaussians(logits, other_logits):
    log_weights = special.log_softmax(logits, axis=1)
    return -pt.logsumexp(log_weights - 0.5 * other_logits**2, axis=1)


@loss
def log_of_sum_of_gaussians(logits, other_logits):
    weights = special.softmax(logits, axis=1)
    return -pt.log((weights * pt.exp(-0.5 * other_logits**2)).sum(axis=1))


@loss
def multiclass_hinge(logits, labels):
    own = logits[pt.arange(labels.shape[0]), labels][:, None]
    return pt.maximum(0, logits - own + 1).sum(axis=1) - 1


@loss
def dice(logits, targets):
    p = pt.sigmoid(logits)
    return 1 - (2 * (p * targets).sum(axis=1) + 1) / (p.sum(axis=1) + targets.sum(axis=1) + 1)


@loss
def contrast_of_rows(logits, other_logits):
    similarity = logits @ other_logits.T / 10
    return pt.logsumexp(similarity, axis=1) - pt.diagonal(similarity)


@loss
def cosine(logits, other_logits):
    lengths = pt.sqrt(pt.sqr(logits).sum(1) * pt.sqr(other_logits).sum(1))
    return 1 - (logits * other_logits).sum(1) / (lengths + 1e-8)


@loss
def multilabel(logits, targets):
    p = pt.sigmoid(logits)
    return -(targets * pt.log(p) + (1 - targets) * pt.log1p(-p)).mean(axis=1)


@loss
def perplexity(logits, labels):
    log_p = special.log_softmax(logits, axis=1)[pt.arange(labels.shape[0]), labels]
    return pt.exp(-log_p)
