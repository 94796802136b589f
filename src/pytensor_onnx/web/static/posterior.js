/** Views of the chains of a sampler: draws of shape (chain, draw, …), kept over all runs. */

import { element, panel } from "./dom.js";
import { bandPlot, clearPlot, densityPlot, forestPlot, linePlot, pairPlot } from "./plots.js";
import { inDigitsOf } from "./tensors.js";

/**
 * @typedef {import("./views.js").Results} Results
 * @typedef {import("./views.js").View} View
 * @typedef {import("./views.js").Output} Output
 * @typedef {import("./views.js").Page} Page
 */

const [LOW, HIGH] = [0.03, 0.97];
export const INTERVAL = "94%";
/** Elements of an array up to which they have rows of their own. */
const FEW = 30;
const MOST_ROWS = 200;
const GOOD_RHAT = 1.01;
const MANY_DRAWS = 400;

/**
 * Return the draws of one element of an array, chain by chain, without those that are yet to come.
 *
 * @param {{dims: number[], numbers: number[]}} result
 * @param {number} [position]
 * @returns {number[][]}
 */
export function chainsOf({ dims: [chains, draws, ...sizes], numbers }, position = 0) {
  const size = sizes.reduce((a, b) => a * b, 1);
  return Array.from({ length: chains }, (_, chain) => {
    const found = [];
    for (let draw = 0; draw < draws; draw++) {
      const x = numbers[(chain * draws + draw) * size + position];
      if (!Number.isNaN(x)) found.push(x);
    }
    return found;
  }).filter((chain) => chain.length);
}

/** @param {number[]} dims */
const sizeOf = (dims) => dims.slice(2).reduce((a, b) => a * b, 1);

/** @param {number[]} numbers */
export const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** @param {number[]} numbers */
export function deviation(numbers) {
  const middle = mean(numbers);
  return Math.sqrt(numbers.reduce((sum, x) => sum + (x - middle) ** 2, 0) / (numbers.length - 1));
}

/**
 * Return a quantile of sorted numbers, between two of them in proportion.
 *
 * @param {ArrayLike<number>} sorted
 * @param {number} level
 */
export function quantile(sorted, level) {
  const at = level * (sorted.length - 1);
  const below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

/** @param {number[]} numbers @returns {[number, number]} */
export function interval(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  return [quantile(sorted, LOW), quantile(sorted, HIGH)];
}

/**
 * Return the quantile of the normal distribution, by Acklam's rational functions (1e-9).
 *
 * @param {number} p
 * @returns {number}
 */
function normalQuantile(p) {
  const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1];
  const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1];
  const value = (/** @type {number[]} */ terms, /** @type {number} */ x) => terms.reduce((sum, term) => sum * x + term, 0);
  if (p > 0.5) return -normalQuantile(1 - p);
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p));
    return value(c, q) / value(d, q);
  }
  const q = p - 0.5;
  return (value(a, q * q) * q) / value(b, q * q);
}

/** Replace numbers by normal scores of their ranks, ties by those of their mean rank. @param {number[][]} chains */
function ranked(chains) {
  const all = chains.flat();
  const order = [...all.keys()].sort((i, j) => all[i] - all[j]);
  const scores = new Array(all.length);
  for (let i = 0, j; i < order.length; i = j) {
    for (j = i; j < order.length && all[order[j]] === all[order[i]]; j++);
    const score = normalQuantile(((i + j + 1) / 2 - 0.375) / (all.length + 0.25));
    for (let k = i; k < j; k++) scores[order[k]] = score;
  }
  let at = 0;
  return chains.map(({ length }) => scores.slice(at, (at += length)));
}

/** Return the halves of chains of one length. @param {number[][]} chains */
function halves(chains) {
  const length = Math.min(...chains.map((chain) => chain.length));
  const half = Math.floor(length / 2);
  return chains.flatMap((chain) => [chain.slice(0, half), chain.slice(length - half, length)]);
}

/** @param {number[][]} chains */
function plainRhat(chains) {
  const length = chains[0].length;
  const within = mean(chains.map((chain) => deviation(chain) ** 2));
  const between = deviation(chains.map(mean)) ** 2;
  return Math.sqrt(between / within + (length - 1) / length);
}

/**
 * Return R-hat of halves of chains, of normal scores of ranks, and of distances from the median (Vehtari et al. 2021).
 *
 * @param {number[][]} chains
 */
export function rhat(chains) {
  const parts = halves(chains);
  if (parts[0].length < 2) return NaN;
  const sorted = Float64Array.from(parts.flat()).sort();
  const median = quantile(sorted, 0.5);
  const folded = parts.map((part) => part.map((x) => Math.abs(x - median)));
  return Math.max(plainRhat(ranked(parts)), plainRhat(ranked(folded)));
}

/**
 * Return the effective number of draws for the middle of the distribution, by Geyer's initial monotone sequence.
 *
 * @param {number[][]} chains
 */
export function effective(chains) {
  const parts = ranked(halves(chains));
  const [count, length] = [parts.length, parts[0].length];
  if (length < 4) return NaN;
  const means = parts.map(mean);
  const covariance = (/** @type {number} */ lag) =>
    mean(parts.map((part, j) => {
      let sum = 0;
      for (let i = lag; i < length; i++) sum += (part[i] - means[j]) * (part[i - lag] - means[j]);
      return sum / length;
    }));
  const within = (covariance(0) * length) / (length - 1);
  const variance = (within * (length - 1)) / length + (count > 1 ? deviation(means) ** 2 : 0);
  const correlation = (/** @type {number} */ lag) => (lag ? 1 - (within - covariance(lag)) / variance : 1);
  let [sum, least] = [0, Infinity];
  let [even, odd] = [1, correlation(1)];
  let lag = 0;
  for (; lag < length - 4 && even + odd >= 0; lag += 2) {
    least = Math.min(least, even + odd);
    sum += least;
    [even, odd] = [correlation(lag + 2), correlation(lag + 3)];
  }
  const time = Math.max(2 * sum - 1 + Math.max(even, 0), 1 / Math.log10(count * length));
  return (count * length) / time;
}

/**
 * A variable: a histogram and traces, or for an array a row for each element, or a band over many.
 *
 * @type {(output: Output) => View}
 */
export function posterior(output) {
  const { label, labels, prior } = output.view;
  const plot = element("div", { class: "plot" });
  const summary = element("p", { class: "hint" });
  const traces = element("div", { class: "plot" });
  const choice = element("select", { "aria-label": `Element of ${label}` });
  const more = element("details", { hidden: true }, element("summary", {}, "Traces"), choice, traces);
  /** @type {Results[string] | null} */
  let last = null;
  const nameOf = (/** @type {number} */ i) => String(labels?.[i] ?? i);
  const trace = () => {
    if (!more.open || !last) return;
    const chains = chainsOf(last, Number(choice.value || 0));
    const length = Math.max(...chains.map((chain) => chain.length));
    linePlot(traces, Array.from({ length }, (_, i) => i + 1), chains, chains.map((_, i) => `chain ${i + 1}`), { x: "draw", y: label, isTitled: true });
  };
  more.addEventListener("toggle", trace);
  choice.addEventListener("change", trace);
  const show = (/** @type {Results} */ results) => {
    last = results[output.name];
    const size = sizeOf(last.dims);
    const draws = Array.from({ length: size }, (_, i) => chainsOf(/** @type {any} */ (last), i).flat());
    more.hidden = !draws[0]?.length;
    if (more.hidden) {
      summary.textContent = size ? "Warming up…" : "no elements";
      return clearPlot(plot);
    }
    const means = draws.map(mean);
    const intervals = draws.map(interval);
    if (size === 1) {
      const write = inDigitsOf(deviation(draws[0]));
      densityPlot(plot, draws[0], label, intervals[0], prior && { levels: prior.levels, values: prior.values[0] });
      summary.textContent = `mean ${write(means[0])}, ${INTERVAL} between ${write(intervals[0][0])} and ${write(intervals[0][1])}`;
    } else {
      const isFew = size <= FEW;
      summary.textContent = `Means, and intervals of ${INTERVAL}${prior && isFew ? "; behind them those of the prior" : ""}.`;
      // The ends of the interval are the third quantile and the third from behind.
      const before = (prior?.values ?? []).map((/** @type {number[]} */ x) => [x[2], x[x.length - 3]]);
      if (isFew) forestPlot(plot, draws.map((_, i) => nameOf(i)), means, intervals, label, null, before);
      else bandPlot(plot, [...draws.keys()], means, intervals.map(([x]) => x), intervals.map(([, x]) => x), { x: "position", y: label, isTitled: true }, null, ["mean", `interval of ${INTERVAL}`]);
    }
    choice.hidden = size === 1;
    if (choice.options.length !== size) choice.replaceChildren(...draws.map((_, i) => element("option", { value: i }, nameOf(i))));
    trace();
  };
  const clear = () => {
    last = null;
    more.hidden = true;
    summary.textContent = "";
    for (const one of [plot, traces]) clearPlot(one);
  };
  return { element: panel(label, plot, summary, more), show, clear };
}

/**
 * Return the elements of variables, each with its label.
 *
 * @param {Output} output
 * @param {Page} page
 * @param {Results} results
 * @returns {{name: string, position: number, label: string}[]}
 */
function elements({ view: { of } }, { labelsOf, labelOf }, results) {
  return of.flatMap((/** @type {string} */ name) => {
    const size = sizeOf(results[name].dims);
    const names = labelsOf(name);
    return Array.from({ length: size }, (_, i) => ({ name, position: i, label: size > 1 ? `${labelOf(name)}[${names?.[i] ?? i}]` : labelOf(name) }));
  });
}

/**
 * A table of means, intervals, R-hat and effective draws, and what to think of them.
 *
 * @type {(output: Output, page: Page) => View}
 */
export function summary(output, page) {
  const verdict = element("p");
  const holder = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": output.view.label });
  const show = (/** @type {Results} */ results) => {
    const rows = elements(output, page, results).slice(0, MOST_ROWS);
    const draws = chainsOf(results[output.name]);
    const count = draws.flat().length;
    if (!count) return clear();
    const body = rows.map(({ name, position, label }) => {
      const chains = chainsOf(results[name], position);
      const numbers = chains.flat();
      return { label, values: [mean(numbers), deviation(numbers), ...interval(numbers), effective(chains), rhat(chains)] };
    });
    // What does not vary has neither.
    const largest = Math.max(...body.map(({ values }) => values[5]).filter(Number.isFinite));
    const least = Math.min(...body.map(({ values }) => values[4]).filter(Number.isFinite));
    const divergent = (results.diverging?.numbers ?? []).filter((x) => x === 1).length;
    const lost = (results.finite_start?.numbers ?? []).flatMap((isFinite, i) => (isFinite === 1 ? [] : [i + 1]));
    const isGood = largest < GOOD_RHAT && least >= MANY_DRAWS && !divergent;
    const advice = isGood ? "The chains agree." : divergent ? "Divergences: the intervals may be too narrow." : "Draw more chains, or make them longer.";
    verdict.textContent = `${draws.length} chains, ${count} draws, ${divergent} ${divergent === 1 ? "divergence" : "divergences"}; R-hat up to ${largest.toFixed(3)}, at least ${Math.round(least)} effective draws. ${advice}`;
    verdict.classList.toggle("bad", lost.length > 0);
    if (lost.length) {
      const chains = lost.length === 1 ? `Chain ${lost[0]} starts` : `Chains ${lost.join(", ")} start`;
      verdict.textContent = `${chains} where the log-density or its gradient is not finite: draws from there mean nothing. Look at the data for values that are missing or out of range.`;
    }
    const head = ["variable", "mean", "sd", "3%", "97%", "ESS", "R-hat"].map((text) => element("th", {}, text));
    const lines = body.map(({ label, values }) => element("tr", {}, element("th", {}, label), ...values.map((x, i) => element("td", {}, written(x, i, inDigitsOf(values[1]))))));
    holder.replaceChildren(element("table", {}, element("tr", {}, ...head), ...lines));
  };
  const clear = () => {
    verdict.textContent = "";
    holder.replaceChildren();
  };
  const made = panel(output.view.label, verdict, holder);
  made.classList.add("wide");
  return { element: made, show, clear, isSlow: true };
}

/** @param {number} x @param {number} column @param {(x: number) => string} write */
const written = (x, column, write) => (!Number.isFinite(x) ? "–" : column === 4 ? String(Math.round(x)) : column === 5 ? x.toFixed(3) : write(x));

/**
 * Two variables against each other, with divergences.
 *
 * @type {(output: Output, page: Page) => View}
 */
export function pairs(output, page) {
  const plot = element("div", { class: "plot" });
  const hint = element("p", { class: "hint" });
  const choices = element("div", { class: "actions", hidden: true });
  /** @type {Results | null} */
  let last = null;
  const [x, y] = ["x", "y"].map((axis) => element("select", { "aria-label": `Variable on ${axis}`, onchange: () => last && show(last) }));
  choices.append(x, y);
  const show = (/** @type {Results} */ results) => {
    last = results;
    choices.hidden = false;
    const known = elements(output, page, results);
    for (const [i, choice] of [x, y].entries()) {
      if (choice.options.length !== known.length) {
        choice.replaceChildren(...known.map((/** @type {any} */ one, /** @type {number} */ j) => element("option", { value: j, selected: i === j }, one.label)));
      }
    }
    const [a, b] = [x, y].map((choice) => known[Number(choice.value)]);
    const [xs, ys] = [a, b].map(({ name, position }) => chainsOf(results[name], position).flat());
    const marked = chainsOf(results[output.name]).flat().map(Boolean);
    if (!xs.length) return clearPlot(plot);
    pairPlot(plot, xs, ys, marked.length === xs.length ? marked : [], { x: a.label, y: b.label });
    hint.textContent = marked.includes(true) ? "Red: draws after which the path diverged." : "";
  };
  const clear = () => {
    last = null;
    choices.hidden = true;
    hint.textContent = "";
    clearPlot(plot);
  };
  return { element: panel(output.view.label, choices, plot, hint), show, clear, isSlow: true };
}
