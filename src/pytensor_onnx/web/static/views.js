import { element, panel, picturePen } from "./dom.js";
import { bandPlot, clearPlot, endsOf, histogramPlot, linePlot } from "./plots.js";
import { pairs, posterior, summary } from "./posterior.js";
import { numbersOf, percentage, shown } from "./tensors.js";
import { points, timeline } from "./timeline.js";

/**
 * @typedef {{name: string, dtype: string, dims: (number | null)[], view: any}} Output
 * @typedef {Record<string, {dims: number[], numbers: number[]}>} Results
 * @typedef {{element: HTMLElement, show: (results: Results, runs: number) => void, clear: () => void, isSlow?: boolean}} View
 * @typedef {{picture: (name?: string) => HTMLCanvasElement | null, width: (name?: string) => number, labelOf: (name: string) => string, labelsOf: (name: string) => string[] | undefined}} Page
 */

const MOST_ROWS = 200;
const MOST_COLUMNS = 50;
const MOST_LINES = 20;
/** @type {Record<string, (output: Output, page: Page) => View | null>} */
const KINDS = { number, bars, lines, band, trace, histogram, table, boxes, picture, points, posterior, summary, pairs, timeline, hidden: () => null };

/**
 * Make the view of an output, null for a hidden one. Before the first run it says that it waits.
 *
 * @param {Output} output
 * @param {Page} page finds the picture of an input, and the labels of inputs and outputs
 * @returns {View | null}
 */
export function makeView(output, page) {
  const view = KINDS[output.view.kind](output, page);
  if (!view) return null;
  const waiting = element("p", { class: "hint" }, "The result appears here.");
  view.element.append(waiting);
  return {
    element: view.element,
    isSlow: view.isSlow,
    show: (results, runs) => {
      waiting.hidden = true;
      view.show(results, runs);
    },
    clear: () => {
      waiting.hidden = false;
      view.clear();
    },
  };
}

/**
 * Return results as plain numbers.
 *
 * @param {Record<string, import("./tensors.js").Tensor>} outputs
 * @returns {Results}
 */
export function readResults(outputs) {
  const entries = Object.entries(outputs);
  return Object.fromEntries(entries.map(([name, x]) => [name, { dims: x.dims, numbers: numbersOf(x) }]));
}

/** @param {Output} output @returns {View} */
function number(output) {
  const value = element("div", { class: "number" });
  const hint = element("p", { class: "hint" });
  const { label, digits, percent } = output.view;
  return {
    element: panel(label, value, hint),
    show: (results) => {
      const [first] = results[output.name].numbers;
      hint.textContent = Number.isNaN(first) ? "There is no result for these inputs: it is not a number (NaN)." : "";
      if (first === undefined) value.textContent = "–";
      else value.textContent = percent ? percentage(first) : shown(first, digits);
    },
    clear: () => (value.textContent = hint.textContent = ""),
  };
}

/** @param {Output} output @returns {View} */
function bars(output) {
  const { label, labels = [], percent, top } = output.view;
  const write = percent ? percentage : shown;
  const list = element("div", { class: "bars", role: "list" });
  const hint = element("p", { class: "hint" });
  return {
    element: panel(label, list, hint),
    show: (results) => {
      const { numbers, dims } = results[output.name];
      const width = dims.at(-1) ?? 1;
      const row = numbers.slice(0, width);
      const rows = numbers.length / (width || 1);
      hint.textContent = rows > 1 ? `the first of ${rows} rows` : noted(row);
      const low = Math.min(0, ...row.filter(Number.isFinite));
      const high = Math.max(0, ...row.filter(Number.isFinite));
      const span = high - low || 1;
      const largest = row.indexOf(Math.max(...row));
      // Of many classes the most probable ones are shown.
      const order = [...row.keys()];
      const kept = top ? order.sort((i, j) => row[j] - row[i]).slice(0, top) : order;
      if (kept.length < row.length) hint.textContent = `the first ${kept.length} of ${row.length}`;
      list.replaceChildren(
        ...kept.map((i) => {
          const value = row[i];
          const fill = element("span", { class: "fill" });
          const [from, to] = [Math.min(0, value), Math.max(0, value)].map((x) => ((x - low) / span) * 100);
          fill.style.left = `${from}%`;
          fill.style.width = `${Number.isFinite(to - from) ? to - from : 0}%`;
          const name = String(labels[i] ?? i);
          return element(
            "div",
            { class: i === largest ? "bar largest" : "bar", role: "listitem" },
            element("span", { class: "name", title: name }, name),
            element("span", { class: "track", "aria-hidden": "true" }, fill),
            element("span", { class: "value" }, write(value)),
          );
        }),
      );
    },
    clear: () => {
      list.replaceChildren();
      hint.textContent = "";
    },
  };
}

/** @param {Output} output @param {Page} page @returns {View} */
function lines(output, { labelOf }) {
  const plot = element("div", { class: "plot" });
  const value = element("div", { class: "number" });
  const hint = element("p", { class: "hint" });
  const { label, x, series, points } = output.view;
  return {
    element: panel(label, value, plot, hint),
    show: (results) => {
      const { numbers, dims } = results[output.name];
      // A line of one point says less than its number.
      const isOne = numbers.length === 1 && !points;
      value.textContent = isOne ? shown(numbers[0]) : "";
      if (isOne) {
        hint.textContent = noted(numbers);
        return clearPlot(plot);
      }
      const sizes = dims.filter((n) => n !== 1);
      const n = sizes[0] ?? 1;
      const width = n ? numbers.length / n : 0;
      hint.textContent = width > MOST_LINES ? `the first ${MOST_LINES} of ${width} columns` : noted(numbers);
      if (!numbers.length) return clearPlot(plot);
      const columns = range(Math.min(MOST_LINES, width)).map((j) => column(numbers, j, width));
      const names = series ?? (width === 1 ? [label] : []);
      const at = x ? results[x].numbers : range(n);
      // A line goes from left to right.
      const order = range(n).sort((i, j) => at[i] - at[j]);
      const sorted = (/** @type {number[]} */ values) => (x ? order.map((i) => values[i]) : values);
      linePlot(plot, sorted(at), columns.map(sorted), names, { x: x ? labelOf(x) : "position", y: label, isTitled: true }, pointsOf(points, results));
    },
    clear: () => {
      clearPlot(plot);
      value.textContent = hint.textContent = "";
    },
  };
}

/** @param {Output} output @param {Page} page @returns {View} */
function band(output, { labelOf }) {
  const plot = element("div", { class: "plot" });
  const { label, x, lower, upper, interval, points } = output.view;
  return {
    element: panel(label, plot),
    show: (results) => {
      const middle = results[output.name].numbers;
      const at = x ? results[x].numbers : range(middle.length);
      const [low, high] = interval
        ? [0, 1].map((j) => column(results[interval].numbers, j, 2))
        : [results[lower].numbers, results[upper].numbers];
      bandPlot(plot, at, middle, low, high, { x: x ? labelOf(x) : "position", y: label, isTitled: true }, pointsOf(points, results));
    },
    clear: () => clearPlot(plot),
  };
}

/**
 * The numbers of all runs: one for each showing of results, or several.
 *
 * @type {(output: Output) => View}
 */
function trace(output) {
  const plot = element("div", { class: "plot" });
  const { label } = output.view;
  return {
    element: panel(label, plot),
    show: (results, runs) => {
      const { numbers } = results[output.name];
      const isByRun = runs % numbers.length === 0;
      const step = isByRun ? runs / numbers.length : 1;
      const at = numbers.map((_, i) => (i + 1) * step);
      linePlot(plot, at, [numbers], [label], { x: isByRun ? "step" : "number", y: label, isTitled: true });
    },
    clear: () => clearPlot(plot),
  };
}

/** @param {Output} output @returns {View} */
function histogram(output) {
  const plot = element("div", { class: "plot" });
  const { label, bins = 40 } = output.view;
  const summary = element("p", { class: "hint" });
  return {
    element: panel(label, plot, summary),
    show: (results) => {
      const numbers = results[output.name].numbers.filter((x) => !Number.isNaN(x));
      const [mean, deviation] = moments(numbers);
      histogramPlot(plot, numbers, bins, label);
      summary.textContent = `${numbers.length} numbers, mean ${shown(mean, 4)}, standard deviation ${shown(deviation, 4)}`;
    },
    clear: () => {
      clearPlot(plot);
      summary.textContent = "";
    },
  };
}

/** @param {Output} output @returns {View} */
function table(output) {
  const { label, columns } = output.view;
  const holder = element("div", { class: "table", tabindex: 0, role: "region", "aria-label": label });
  return {
    element: panel(label, holder),
    show: (results) => {
      const { numbers, dims } = results[output.name];
      const width = dims.length > 1 ? dims.slice(1).reduce((a, b) => a * b, 1) : 1;
      const columnsShown = Math.min(MOST_COLUMNS, width);
      const rows = width ? Math.min(MOST_ROWS, numbers.length / width) : 0;
      const head = element("tr", {}, element("th"), ...range(columnsShown).map((j) => element("th", {}, String(columns?.[j] ?? j))));
      const body = range(rows).map((i) =>
        element(
          "tr",
          {},
          element("th", {}, String(i)),
          ...range(columnsShown).map((j) => element("td", {}, shown(numbers[i * width + j]))),
        ),
      );
      const more = [
        [numbers.length / (width || 1) - rows, "rows"],
        [width - columnsShown, "columns"],
      ].filter(([count]) => count);
      holder.replaceChildren(numbers.length ? element("table", {}, head, ...body) : "");
      const note = more.length ? `and ${more.map((x) => x.join(" more ")).join(", ")} in the CSV` : noted(numbers);
      if (note) holder.append(element("p", { class: "hint" }, note));
    },
    clear: () => holder.replaceChildren(),
  };
}

/**
 * Boxes on an image: rows of left, top, right, bottom, score and class, or in columns their centre, size and a score for
 * each class, of which those that overlap a better one are left out.
 *
 * @param {Output} output
 * @param {Page} page
 * @returns {View}
 */
function boxes(output, { picture, width }) {
  const { label, labels = [], threshold = 0.25, image, format = "rows" } = output.view;
  const drawn = element("canvas", { role: "img", "aria-label": label });
  const list = element("p", { class: "hint" });
  return {
    element: panel(label, drawn, list),
    show: (results) => {
      const source = picture(image);
      if (!source) return;
      const by = source.width / width(image);
      const pen = picturePen(drawn, source);
      pen.lineWidth = Math.max(2, drawn.width / 200);
      const size = Math.max(11, drawn.width / 28);
      pen.font = `${size}px sans-serif`;
      /** @type {string[]} */
      const names = [];
      for (const box of apart(rowsOf(results[output.name], format).filter((row) => row[4] >= threshold))) {
        const [left, top, right, bottom] = box.map((x) => by * x);
        const [score, kind] = box.slice(4);
        const name = `${labels[kind] ?? kind} ${Math.round(100 * score)}%`;
        names.push(name);
        pen.strokeStyle = pen.fillStyle = `hsl(${(kind * 137) % 360} 80% 32%)`;
        pen.strokeRect(left, top, right - left, bottom - top);
        const base = Math.max(size, top);
        pen.fillRect(left, base - size, pen.measureText(name).width + 6, size + 2);
        pen.fillStyle = "#fff";
        pen.fillText(name, left + 3, base - 0.2 * size);
      }
      list.textContent = names.length ? `Found: ${names.join(", ")}.` : `Nothing found with a score of ${Math.round(100 * threshold)}% or more.`;
    },
    clear: () => {
      drawn.width = drawn.height = 0;
      list.textContent = "";
    },
  };
}

/**
 * Return boxes as rows of left, top, right, bottom, score and class.
 *
 * @param {{dims: number[], numbers: number[]}} result
 * @param {string} format
 * @returns {number[][]}
 */
function rowsOf({ dims, numbers }, format) {
  const width = dims.at(-1) ?? 6;
  if (format === "rows") return range(numbers.length / width).map((i) => numbers.slice(i * width, i * width + 6));
  const classes = (dims.at(-2) ?? 4) - 4;
  return range(width).map((i) => {
    const [x, y, w, h] = range(4).map((j) => numbers[j * width + i]);
    const scores = range(classes).map((j) => numbers[(4 + j) * width + i]);
    const score = Math.max(...scores);
    return [x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, scores.indexOf(score)];
  });
}

/** Leave out boxes that overlap a better one of their class by this share of both. */
const OVERLAP = 0.45;

/** @param {number[][]} boxes */
export function apart(boxes) {
  /** @type {number[][]} */
  const kept = [];
  for (const box of boxes.sort((a, b) => b[4] - a[4])) {
    if (!kept.some((other) => other[5] === box[5] && overlap(other, box) > OVERLAP)) kept.push(box);
  }
  return kept;
}

/** @param {number[]} a @param {number[]} b */
function overlap(a, b) {
  const area = (/** @type {number[]} */ box) => Math.max(0, box[2] - box[0]) * Math.max(0, box[3] - box[1]);
  const both = area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  return both / (area(a) + area(b) - both || 1);
}

/**
 * An image, of one or three channels before height and width; numbers are in units of `scale`.
 *
 * @type {(output: Output) => View}
 */
function picture(output) {
  const { label, scale } = output.view;
  const drawn = element("canvas", { role: "img", "aria-label": label, class: "picture" });
  const hint = element("p", { class: "hint" });
  return {
    element: panel(label, drawn, hint),
    show: (results) => {
      const { numbers, dims } = results[output.name];
      const [channels, height, width] = dims.slice(-3);
      const [low, high] = endsOf(numbers);
      const white = scale ?? (high > 2 ? 255 : 1);
      hint.textContent = `numbers from ${shown(low, 3)} to ${shown(high, 3)}`;
      [drawn.width, drawn.height] = [width, height];
      const pen = /** @type {CanvasRenderingContext2D} */ (drawn.getContext("2d"));
      const pixels = pen.createImageData(width, height);
      for (let i = 0; i < width * height; i++) {
        for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = (255 / white) * numbers[(channels === 3 ? c : 0) * width * height + i];
        pixels.data[4 * i + 3] = 255;
      }
      pen.putImageData(pixels, 0, 0);
    },
    clear: () => {
      drawn.width = drawn.height = 0;
      hint.textContent = "";
    },
  };
}

/** Say why nothing is drawn. @param {number[]} numbers */
function noted(numbers) {
  if (!numbers.length) return "no elements";
  return numbers.some(Number.isFinite) ? "" : "no finite numbers";
}

/** @param {number} n */
const range = (n) => Array.from({ length: n }, (_, i) => i);

/** @param {number[]} numbers @param {number} j @param {number} width */
const column = (numbers, j, width) => range(numbers.length / width).map((i) => numbers[i * width + j]);

/** @param {number[]} numbers */
function moments(numbers) {
  const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  return [mean, Math.sqrt(numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (numbers.length - 1))];
}

/**
 * Return the coordinates of points: rows of two numbers, or the name of an input or output.
 *
 * @param {(number[] | string)[] | string | undefined} points also the names of two inputs or outputs
 * @param {Results} results
 */
function pointsOf(points, results) {
  if (!points) return null;
  if (typeof points[0] === "string" && Array.isArray(points)) return points.map((name) => results[/** @type {string} */ (name)].numbers);
  const numbers = typeof points === "string" ? results[points].numbers : /** @type {number[]} */ (points.flat());
  return [0, 1].map((j) => column(numbers, j, 2));
}
