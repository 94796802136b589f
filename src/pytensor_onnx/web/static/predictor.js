/** The page of a predictor: one covariate along the axis, or rows of a table; the others are controls. */

import { readTable, writeTable } from "./csv.js";
import { acceptDrops, element, panel, words } from "./dom.js";
import { bandPlot, barPlot, clearPlot, forestPlot, linePlot } from "./plots.js";
import { INTERVAL, interval, mean } from "./posterior.js";
import { inDigitsOf, shown, tensor } from "./tensors.js";

/**
 * @typedef {{input: string, name: string, label: string, whole: boolean, rows: boolean, column?: number, of?: number, choices?: [number, string][], min?: number, max?: number, median?: number, steps?: number, sample?: number[]}} Covariate
 * @typedef {{name: string, label: string, names: Record<string, string>, levels: number[], mass: number, categories: number[], observed?: number[]}} Predicted
 * @typedef {{middle: number[], low: number[] | null, high: number[] | null, share: string}} Summary
 */

const POINTS = 60;
const FIRST_ROWS = 5;
const FEW_ROWS = 30;
const MOST_DOTS = 300;
const ROWS = "rows of a table";
/** Rows by which the page finds whether they depend on each other, and most rows of the data that it shows then. */
const [PROBED, FOLLOWING] = [12, 200];
/** Difference of predictions, in shares of their spread, above which it is not rounding. */
const APART = 0.01;

/**
 * @param {any} description
 * @param {() => void} changed
 */
export function makePredictor({ inputs, predictor }, changed) {
  /** @type {Covariate[]} */
  const covariates = predictor.covariates;
  const along = covariates.filter(({ rows }) => rows);
  const choice = element("select", { "aria-label": "Along the axis" }, ...[...along.map(({ label }) => label), ROWS].map((text, i) => element("option", { value: i }, text)));
  // A number makes a better first axis than a factor.
  choice.value = String(Math.max(0, along.findIndex(({ choices }) => !choices)));
  const fields = covariates.map((covariate) => field(covariate, changed));
  const text = element("textarea", { spellcheck: false, "aria-label": "Rows", oninput: changed });
  text.value = exampleOf(along);
  const rowsOf = panelOfRows(text, along, changed);
  const settings = element("div", { class: "panel" }, element("h2", {}, "Covariates"), element("div", { class: "row choice" }, element("label", {}, "Along the axis"), choice), ...fields.map((one) => one.element));
  const isTable = () => choice.value === String(along.length);
  const axis = () => along[Number(choice.value)];
  const arrange = () => {
    rowsOf.hidden = !isTable();
    covariates.forEach((covariate, i) => fields[i].set(covariate.rows && isTable() ? "hidden" : covariate === axis() ? "range" : "value"));
  };
  choice.addEventListener("change", () => {
    arrange();
    changed();
  });
  arrange();

  /** Values of the covariates for each row of the run. @type {Map<Covariate, number[]>} */
  let rows = new Map();
  /** The rows of a trial, null in other runs. @type {Map<Covariate, number[]> | null} */
  let trial = null;
  const note = element("p", { class: "hint", hidden: true }, "In this model a row depends on those before it: the axis has the rows of the table, in their order.");
  settings.append(note);
  /** @param {number | null} size number of rows that the model has, null for any */
  const readRows = (size) => {
    if (!along.length) return new Map();
    if (trial) return trial;
    if (isTable()) return tableOf(text.value, along, size);
    const at = axis();
    const ends = fields[covariates.indexOf(at)];
    const values = at.choices ? cycled(at.choices.map(([value]) => value), size) : spaced(at, ends.range(), size ?? POINTS);
    return new Map(along.map((covariate) => [covariate, covariate === at ? values : values.map(() => fields[covariates.indexOf(covariate)].read())]));
  };
  const covered = inputs.filter((/** @type {any} */ input) => input.control.kind === "covariate");
  const controls = covered.map((/** @type {any} */ input, /** @type {number} */ i) => ({
    name: input.name,
    element: i ? "" : element("div", {}, settings, rowsOf),
    read: () => {
      if (!i) rows = readRows(covered.map((/** @type {any} */ x) => x.dims[0]).find(Number.isInteger) ?? null);
      // Along an axis all rows have one key: the lines have no noise of their own.
      if (input.name === predictor.row_id) return tensor(input.dtype, [...(rows.values().next().value ?? [0]).keys()].map((row) => (isTable() && !trial ? row : 0)), [rows.values().next().value?.length ?? 1]);
      const own = covariates.filter((covariate) => covariate.input === input.name);
      if (!own[0].rows) return tensor(input.dtype, [fields[covariates.indexOf(own[0])].read()], []);
      const columns = own.map((covariate) => /** @type {number[]} */ (rows.get(covariate)));
      const numbers = columns[0].flatMap((_, row) => columns.map((column) => column[row]));
      return tensor(input.dtype, numbers, own[0].of ? [columns[0].length, own[0].of] : [numbers.length]);
    },
    save: i ? undefined : () => JSON.stringify([choice.value, text.value, ...fields.map((one) => one.save())]),
    restore: (/** @type {string} */ saved) => {
      const [chosen, table, ...rest] = JSON.parse(saved);
      choice.value = chosen;
      text.value = table;
      fields.forEach((one, j) => one.restore(rest[j]));
      arrange();
    },
  }));
  /** @type {Predicted[]} */
  const predicted = predictor.outputs;
  /** @type {string[][]} */
  let table = [];
  /** Return whether a row of the data has the chosen values of all factors but that along the axis. @param {number} row */
  const isChosen = (row) => along.every((covariate) => covariate === axis() || !covariate.choices || !covariate.sample || covariate.sample[row] === fields[covariates.indexOf(covariate)].read());
  const isData = () => along.every((covariate) => covariate.sample && rows.get(covariate)?.every((x, i) => x === covariate.sample?.[i]));
  /** What rises from row to row, as time does. */
  const rising = () => along.find((covariate) => !covariate.choices && rows.get(covariate)?.every((x, i, all) => !i || x > all[i - 1]));
  const views = predicted.map((output) => view(output, () => (isTable() || !along.length ? null : axis()), () => rows, isChosen, isData, rising));
  /**
   * Find whether a row depends on others, by predictions of rows in both orders; if so, show the rows of the data.
   *
   * @param {(change: () => void) => Promise<any>} run sets the trial, and runs the model on it
   */
  const probe = async (run) => {
    const size = covered.map((/** @type {any} */ x) => x.dims[0]).find(Number.isInteger);
    const count = Math.min(size ?? PROBED, ...along.map(({ sample }) => sample?.length ?? 0));
    if (!predictor.row_id || !along.length || count < 2 || (size && size > count)) return;
    const given = along.map((covariate) => /** @type {number[]} */ (covariate.sample).slice(0, count));
    const found = [];
    for (const order of [given, given.map((values) => [...values].reverse())]) {
      const results = await run(() => (trial = new Map(along.map((covariate, i) => [covariate, order[i]]))));
      found.push(predicted.map((output) => summarised(output, results).middle));
    }
    trial = null;
    const depends = found[0].some((middle, i) => {
      const back = [...found[1][i]].reverse();
      const spread = Math.max(...middle) - Math.min(...middle);
      return middle.length === count && middle.some((x, row) => Math.abs(x - back[row]) > APART * spread);
    });
    if (!depends) return;
    text.value = exampleOf(along, Math.min(FOLLOWING, size ?? FOLLOWING));
    choice.value = String(along.length);
    note.hidden = false;
    arrange();
  };
  const all = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Predictions" });
  const list = { element: panel("Predictions of the rows", all), show: (/** @type {any} */ results) => {
    const summaries = predicted.map((output) => summarised(output, results));
    const count = Math.min(...summaries.map(({ middle }) => middle.length));
    const writes = summaries.map(({ middle, low, high }) => inDigitsOf(Math.max(...middle.map((x, i) => (low && high ? high[i] - low[i] : Math.abs(x)))) / 10));
    const names = predicted.flatMap(({ name }, i) => [`${name}: mean`, ...(summaries[i].low ? ["low", "high"] : [])]);
    const header = [...along.map(({ name }) => name), ...names];
    table = [header, ...Array.from({ length: count }, (_, row) => [
      ...along.map((covariate) => named(covariate, /** @type {number[]} */ (rows.get(covariate))[row])),
      ...summaries.flatMap(({ middle, low, high }, i) => (low && high ? [middle, low, high] : [middle]).map((numbers) => writes[i](numbers[row]))),
    ])];
    list.element.hidden = !isTable();
    const [first, ...lines] = table.slice(0, 201);
    all.replaceChildren(element("table", {}, element("tr", {}, ...first.map((x) => element("th", {}, x))), ...lines.map((line) => element("tr", {}, ...line.map((x) => element("td", {}, x))))));
  }, clear: () => all.replaceChildren() };
  return { controls, views: [...views, list], csv: () => writeTable(table), probe };
}

/** @param {string} name */
const plain = (name) => words(name).toLowerCase();

/** @param {Covariate} covariate @param {number} value */
const named = ({ choices }, value) => choices?.find(([x]) => x === value)?.[1] ?? shown(value, 6);

/** @param {number[]} values @param {number | null} size */
const cycled = (values, size) => Array.from({ length: size ?? values.length }, (_, i) => values[i % values.length]);

/**
 * Return equally spaced numbers, whole ones for whole covariates.
 *
 * @param {Covariate} covariate
 * @param {[number, number]} ends
 * @param {number} count
 */
function spaced({ whole }, [low, high], count) {
  const found = Array.from({ length: count }, (_, i) => low + ((high - low) * i) / Math.max(1, count - 1));
  return whole ? found.map(Math.round) : found;
}

/**
 * The control of a covariate: its value, or its ends while it lies along the axis.
 *
 * @param {Covariate} covariate
 * @param {() => void} changed
 */
function field({ label, choices, min = -3, max = 3, median = 0, steps, whole }, changed) {
  const number = (/** @type {string} */ name, /** @type {number} */ value) => element("input", { type: "number", step: "any", value, "aria-label": `${label}, ${name}`, oninput: changed });
  const rounded = (/** @type {number} */ x) => (whole ? x : Number(x.toPrecision(3)));
  const [from, to] = [number("from", rounded(min)), number("to", rounded(max))];
  const ends = element("span", { class: "ends" }, from, element("span", { class: "hint" }, "to"), to);
  const step = whole ? 1 : (steps ?? (max - min) / 200);
  const value = choices
    ? element("select", { "aria-label": label, onchange: changed }, ...choices.map(([x, name]) => element("option", { value: x, selected: x === median }, name)))
    : element("input", { type: "range", min, max, step, value: median, "aria-label": label });
  const shownValue = choices ? element("span") : number("value", rounded(median));
  if (!choices) {
    value.addEventListener("input", () => {
      shownValue.value = shown(Number(value.value));
      changed();
    });
    shownValue.addEventListener("input", () => (value.value = shownValue.value));
  }
  const made = element("div", { class: "row" }, element("label", {}, label), value, shownValue, ends);
  const all = element("span", { class: "hint" }, "along the axis");
  if (choices) ends.replaceChildren(all);
  return {
    element: made,
    /** @param {string} mode */
    set: (mode) => {
      made.hidden = mode === "hidden";
      value.hidden = mode !== "value";
      shownValue.hidden = mode !== "value" || Boolean(choices);
      ends.hidden = mode !== "range";
    },
    read: () => {
      const given = choices ? value.value : shownValue.value;
      if (given === "") throw new Error(`${label}: give a number`);
      return Number(given);
    },
    /** @returns {[number, number]} */
    range: () => {
      const [low, high] = [from, to].map((end) => end.value);
      if (low === "" || high === "" || Number(low) >= Number(high)) throw new Error(`${label}: give two numbers, the smaller one first`);
      return [Number(low), Number(high)];
    },
    save: () => [choices ? value.value : shownValue.value, from.value, to.value],
    /** @param {string[]} saved */
    restore: ([x, low, high]) => {
      value.value = shownValue.value = x;
      [from.value, to.value] = [low, high];
    },
  };
}

/** @param {HTMLTextAreaElement} text @param {Covariate[]} along @param {() => void} changed */
function panelOfRows(text, along, changed) {
  const file = element("input", { type: "file", accept: ".csv,.tsv,.txt,text/*", "aria-label": "File of rows" });
  const take = async (/** @type {File} */ given) => {
    text.value = await given.text();
    changed();
  };
  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  const made = panel("Rows", element("p", { class: "hint" }, `Type or paste rows, or open a CSV file, with the columns ${along.map(({ name }) => name).join(", ")}.`), text, file);
  acceptDrops(made, take);
  return made;
}

/** Return the first rows of the sample as CSV. @param {Covariate[]} along @param {number} [most] */
function exampleOf(along, most = FIRST_ROWS) {
  const count = Math.max(1, Math.min(most, ...along.map(({ sample }) => sample?.length ?? 1)));
  const rows = Array.from({ length: count }, (_, i) => along.map((covariate) => named(covariate, covariate.sample?.[i] ?? covariate.median ?? covariate.choices?.[0][0] ?? 0)));
  return writeTable([along.map(({ name }) => name), ...rows]);
}

/**
 * Read the columns of covariates from a CSV with a header, in any order; labels of factors stand for their numbers.
 *
 * @param {string} text
 * @param {Covariate[]} along
 * @param {number | null} size
 * @returns {Map<Covariate, number[]>}
 */
function tableOf(text, along, size) {
  const [header = [], ...lines] = readTable(text);
  const known = header.map(plain);
  const placeOf = (/** @type {Covariate} */ { name, label }) => [name, label].map((x) => known.indexOf(plain(x))).find((at) => at >= 0) ?? -1;
  const missing = along.filter((covariate) => placeOf(covariate) < 0);
  if (missing.length) throw new Error(`The first line names the columns: ${missing.map(({ name }) => name).join(", ")} is missing`);
  if (!lines.length) throw new Error("Give at least one row");
  if (size !== null && lines.length !== size) throw new Error(`The model takes ${size} rows, not ${lines.length}`);
  return new Map(along.map((covariate) => {
    const at = placeOf(covariate);
    return [covariate, lines.map((line, i) => {
      const cell = line[at] ?? "";
      const value = covariate.choices?.find(([, name]) => name === cell)?.[0] ?? (cell === "" ? NaN : Number(cell));
      if (Number.isNaN(value)) throw new Error(`Row ${i + 1}: ${cell || "nothing"} is no value of ${covariate.name}`);
      return value;
    })];
  }));
}

/**
 * Return means and intervals of a predicted variable, from whatever the model has of them.
 *
 * @param {Predicted} output
 * @param {any} results
 * @returns {Summary}
 */
function summarised({ names, levels, mass }, results) {
  const column = (/** @type {number[]} */ numbers, /** @type {number} */ j, /** @type {number} */ width) => numbers.filter((_, i) => i % width === j);
  const draws = results[names.draws];
  const columns = () => {
    const width = draws.numbers.length / draws.dims[0];
    return Array.from({ length: width }, (_, j) => column(draws.numbers, j, width));
  };
  const middle = results[names.mean]?.numbers ?? (draws ? columns().map(mean) : null);
  if (names.hdi) {
    const [low, high] = [0, 1].map((j) => column(results[names.hdi].numbers, j, 2));
    return { middle: middle ?? low.map((x, i) => (x + high[i]) / 2), low, high, share: `${100 * mass}%` };
  }
  if (names.quantiles && levels.length > 1) {
    const order = [...levels.keys()].sort((i, j) => levels[i] - levels[j]);
    const at = (/** @type {number} */ j) => column(results[names.quantiles].numbers, j, levels.length);
    const [first, last] = [order[0], order[order.length - 1]];
    return { middle: middle ?? at(order[order.length >> 1]), low: at(first), high: at(last), share: `${Math.round(1000 * (levels[last] - levels[first])) / 10}%` };
  }
  if (draws) {
    const ends = columns().map(interval);
    return { middle, low: ends.map(([x]) => x), high: ends.map(([, x]) => x), share: INTERVAL };
  }
  const spread = results[names.sd]?.numbers;
  if (!middle || !spread) return { middle: middle ?? results[Object.values(names)[0]].numbers, low: null, high: null, share: "" };
  const ends = [-2, 2].map((by) => middle.map((/** @type {number} */ x, /** @type {number} */ i) => x + by * spread[i]));
  return { middle, low: ends[0], high: ends[1], share: "two standard deviations" };
}

/**
 * The view of a predicted variable.
 *
 * @param {Predicted} output
 * @param {() => Covariate | null} axis
 * @param {() => Map<Covariate, number[]>} rows
 * @param {(row: number) => boolean} isChosen whether a row of the data is of the groups that are shown
 * @param {() => boolean} isData whether the rows are the first ones of the data
 * @param {() => Covariate | undefined} rising what rises from row to row
 */
function view(output, axis, rows, isChosen, isData, rising) {
  const plot = element("div", { class: "plot" });
  const hint = element("p", { class: "hint" });
  const { label, names, categories, observed } = output;
  const show = (/** @type {any} */ results) => {
    const at = axis();
    const xs = (at && rows().get(at)) ?? [];
    const chances = xs.length && categories.length ? chancesOf(output, results, xs.length) : null;
    if (chances) {
      const shares = { x: at?.label ?? "row", y: "probability", isTitled: false };
      hint.textContent = "The probability of each value.";
      if (!at?.choices) return linePlot(plot, xs, chances, categories.map(String), shares);
      return barPlot(plot, xs.map((x) => named(at, x)), chances, categories.map(String), "probability");
    }
    const { middle, low, high, share } = summarised(output, results);
    const isByRow = !xs.length || middle.length !== xs.length;
    const time = isByRow && middle.length > FEW_ROWS ? rising() : undefined;
    const positions = isByRow ? ((time && rows().get(time)) ?? middle.map((_, i) => i + 1)) : xs;
    const data = isByRow && observed && middle.length > FEW_ROWS && isData() ? [positions, observed.slice(0, positions.length)] : !isByRow && observed && at?.sample?.length === observed.length ? [at.sample, observed] : null;
    const [dots, others] = [true, false].map((chosen) => data && thinned(data.map((values) => values.filter((_, row) => (isByRow || isChosen(row)) === chosen))));
    hint.textContent = "";
    const labels = { x: isByRow ? (time?.label ?? "row") : (at?.label ?? ""), y: label, isTitled: true };
    if (!low || !high) return linePlot(plot, positions, [middle], ["mean"], labels, dots);
    if (at?.choices && !isByRow) {
      const place = new Map(at.choices.map(([value], i) => [value, i]));
      const pairs = dots && [dots[1], dots[0].map((x) => place.get(x) ?? NaN)];
      hint.textContent = `Dots on lines: means, and intervals of ${share}${pairs ? "; small dots: the data" : ""}.`;
      return forestPlot(plot, xs.map((x) => named(at, x)), middle, low.map((x, i) => [x, high[i]]), label, pairs);
    }
    if (isByRow && middle.length <= FEW_ROWS) {
      hint.textContent = `Means, and intervals of ${share}.`;
      return forestPlot(plot, positions.map((i) => `row ${i}`), middle, low.map((x, i) => [x, high[i]]), label);
    }
    bandPlot(plot, positions, middle, low, high, labels, dots, ["mean", `${share} of the predictions`], others?.[0].length ? others : null);
  };
  return { element: panel(label, plot, hint), show, clear: () => clearPlot(plot) };
}

/**
 * Return the probability of each category for each row: what the model computes, or the shares of its draws.
 *
 * @param {Predicted} output
 * @param {any} results
 * @param {number} rows
 * @returns {number[][] | null}
 */
function chancesOf({ names, categories }, results, rows) {
  const found = results[names.probabilities];
  if (found) return categories.map((_, j) => found.numbers.filter((/** @type {number} */ _, /** @type {number} */ i) => i % categories.length === j));
  const draws = results[names.draws];
  if (!draws || draws.numbers.length !== draws.dims[0] * rows) return null;
  return categories.map((category) => {
    const counts = new Array(rows).fill(0);
    draws.numbers.forEach((/** @type {number} */ x, /** @type {number} */ i) => (counts[i % rows] += x === category ? 1 : 0));
    return counts.map((count) => count / draws.dims[0]);
  });
}

/** Keep some of many points. @param {number[][]} points */
function thinned(points) {
  const step = Math.ceil(points[0].length / MOST_DOTS);
  return points.map((values) => values.filter((_, i) => i % step === 0));
}
