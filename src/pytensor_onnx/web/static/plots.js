/** Plots as SVG, in the colours of the page. */

import { element } from "./dom.js";
import { shown } from "./tensors.js";

const HEIGHT = 260;
const [TOP, BOTTOM, RIGHT] = [8, 42, 12];
/** Width of a digit of the ticks, and pixels between two ticks at least. */
const [DIGIT, APART] = [7.5, 70];
const [BINS, LOW_HEIGHT] = [32, 170];
const COLOURS = 8;
/** Most points of a line in each pixel, beyond which a line has the ends of what falls into one. */
const DENSE = 4;

/**
 * @typedef {number[][] | null} Points further points, lists of x and y
 * @typedef {{x: string, y: string, isTitled?: boolean}} Labels names of the axes; a title may have that of y already
 * @typedef {[number, number]} Ends
 * @typedef {{root: SVGElement, x: (value: number) => number, y: (value: number) => number, width: number, left: number}} Frame
 */

/** What draws a plot anew in another width. @type {WeakMap<HTMLElement, {draw: () => void, observer: ResizeObserver}>} */
const PLOTS = new WeakMap();

/**
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...(Node | string)} children
 * @returns {any}
 */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * Draw a plot now, and again when its width changes.
 *
 * @param {HTMLElement} holder
 * @param {string} description for those who do not see it
 * @param {(width: number) => (Node | string)[]} draw
 */
function plot(holder, description, draw) {
  let width = 0;
  const again = () => {
    width = Math.max(240, holder.clientWidth || 480);
    holder.replaceChildren(...draw(width));
  };
  clearPlot(holder);
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", description);
  const observer = new ResizeObserver(() => holder.clientWidth && Math.max(240, holder.clientWidth) !== width && again());
  PLOTS.set(holder, { draw: again, observer });
  again();
  observer.observe(holder);
}

/**
 * Remove the plot of an element.
 *
 * @param {HTMLElement} holder
 */
export function clearPlot(holder) {
  PLOTS.get(holder)?.observer.disconnect();
  PLOTS.delete(holder);
  holder.replaceChildren();
}

/**
 * Return the least and the largest finite number.
 *
 * @param {...ArrayLike<number | null>} arrays
 * @returns {Ends}
 */
export function endsOf(...arrays) {
  let [low, high] = [Infinity, -Infinity];
  for (const array of arrays) {
    for (let i = 0; i < array.length; i++) {
      const x = array[i];
      if (x !== null && Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
    }
  }
  return [low, high];
}

/** @param {Ends} ends */
const written = ([low, high]) => (low > high ? "no numbers" : `${shown(low, 3)} to ${shown(high, 3)}`);

/** Make ends wider, so that nothing stands on the edge. @param {Ends} ends @param {number} [share] @returns {Ends} */
function padded([low, high], share = 0.05) {
  if (low > high) return [0, 1];
  const room = low === high ? Math.abs(low) / 10 || 1 : (high - low) * share;
  return [low - room, high + room];
}

/**
 * Return round numbers between two ends.
 *
 * @param {Ends} ends
 * @param {number} count
 */
export function ticks([low, high], count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((x) => x * power >= rough) ?? 10);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * step; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/**
 * Draw the axes of a plot.
 *
 * @param {number} width
 * @param {Labels} labels
 * @param {Ends} xs
 * @param {Ends} ys
 * @param {string[]} [rows] names of rows in place of numbers on y
 * @param {number} [height]
 * @returns {Frame}
 */
function frame(width, labels, xs, ys, rows, height = HEIGHT) {
  const bottom = labels.x ? BOTTOM : BOTTOM - 20;
  const marks = rows ? rows.map((name, i) => /** @type {const} */ ([i, name])) : ticks(ys, 5).map((y) => /** @type {const} */ ([y, shown(y)]));
  const most = Math.floor((0.35 * width) / DIGIT);
  const longest = Math.min(most, Math.max(...marks.map(([, text]) => text.length), 1));
  const left = longest * DIGIT + (labels.isTitled || rows ? 10 : 28);
  const x = (/** @type {number} */ value) => left + ((value - xs[0]) / (xs[1] - xs[0])) * (width - left - RIGHT);
  const y = (/** @type {number} */ value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0])) * (height - bottom - TOP);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const [at, text] of marks) {
    const short = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
    root.append(svg("line", { class: "grid", x1: left, x2: width - RIGHT, y1: y(at), y2: y(at) }));
    root.append(svg("text", { x: left - 5, y: y(at) + 4, "text-anchor": "end" }, short, svg("title", {}, text)));
  }
  for (const at of ticks(xs, (width - left) / APART)) {
    root.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: TOP, y2: height - bottom }));
    root.append(svg("text", { x: x(at), y: height - bottom + 16, "text-anchor": "middle" }, shown(at)));
  }
  root.append(svg("text", { x: (left + width - RIGHT) / 2, y: height - 5, "text-anchor": "middle" }, labels.x));
  if (!labels.isTitled && !rows) {
    const middle = (height - BOTTOM + TOP) / 2;
    root.append(svg("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, labels.y));
  }
  return { root, x, y, width, left };
}

/**
 * Return the path of a line; what is no number is a gap.
 *
 * @param {Frame} at
 * @param {ArrayLike<number>} xs
 * @param {ArrayLike<number>} ys
 */
function path({ x, y, width }, xs, ys) {
  const step = Math.ceil(xs.length / (DENSE * width));
  /** @type {string[]} */
  const parts = [];
  let isDown = false;
  const to = (/** @type {number} */ i) => {
    const isNumber = Number.isFinite(xs[i]) && Number.isFinite(ys[i]);
    if (isNumber) parts.push(`${isDown ? "L" : "M"}${x(xs[i]).toFixed(1)} ${y(ys[i]).toFixed(1)}`);
    isDown = isNumber;
  };
  for (let i = 0; i < xs.length; i += step) {
    if (step === 1) to(i);
    else {
      let [low, high] = [i, i];
      for (let j = i; j < Math.min(i + step, xs.length); j++) {
        if (ys[j] < ys[low]) low = j;
        if (ys[j] > ys[high]) high = j;
      }
      for (const j of low < high ? [low, high] : [high, low]) to(j);
    }
  }
  return parts.join("");
}

/** @param {Frame} at @param {Points} points @param {string} [kind] */
function dots({ root, x, y }, points, kind = "dot") {
  if (!points) return;
  // Lines of no length with round ends: one element for all dots.
  const places = points[0].map((px, i) => [px, points[1][i]]).filter(([px, py]) => Number.isFinite(px) && Number.isFinite(py));
  root.append(svg("path", { class: kind, d: places.map(([px, py]) => `M${x(px).toFixed(1)} ${y(py).toFixed(1)}h0`).join("") }));
}

/** Entry of a legend for the dots of data. */
const DATA = { name: "data", colour: 1, values: [], kind: "mark" };

/**
 * Return the names of lines, bands and dots, and their values where the pointer is.
 *
 * @param {Frame} at
 * @param {number[]} xs
 * @param {{name: string, colour: number, values: number[][], kind?: string}[]} series a band has two lists of values
 * @param {string} label of x
 */
function legend({ root, x, left }, xs, series, label) {
  const values = series.map(() => element("b"));
  const where = element("span");
  const items = series.map(({ name, colour, kind = "" }, i) => element("span", { class: `key ${kind} line${colour}` }, name, " ", values[i]));
  const pointed = svg("line", { class: "pointed", y1: TOP, y2: HEIGHT - BOTTOM, x1: left, x2: left, visibility: "hidden" });
  root.append(pointed);
  root.addEventListener("pointermove", (event) => {
    const place = event.clientX - root.getBoundingClientRect().left;
    let nearest = 0;
    xs.forEach((value, i) => Math.abs(x(value) - place) < Math.abs(x(xs[nearest]) - place) && (nearest = i));
    for (const end of ["x1", "x2"]) pointed.setAttribute(end, String(x(xs[nearest])));
    pointed.setAttribute("visibility", "visible");
    where.textContent = `${label} ${shown(xs[nearest], 4)}`;
    series.forEach((one, i) => (values[i].textContent = one.values.map((list) => shown(list[nearest], 4)).join(" to ")));
  });
  root.addEventListener("pointerleave", () => {
    pointed.setAttribute("visibility", "hidden");
    for (const text of [where, ...values]) text.textContent = "";
  });
  return element("div", { class: "legend", "aria-hidden": "true" }, ...items, where);
}

/**
 * Draw lines over common positions.
 *
 * @param {HTMLElement} holder
 * @param {number[]} xs
 * @param {number[][]} columns
 * @param {string[]} names
 * @param {Labels} labels
 * @param {Points} [points]
 * @param {number[]} [ends] numbers that the vertical axis has at least
 */
export function linePlot(holder, xs, columns, names, labels, points = null, ends = []) {
  const [along, across] = [endsOf(xs, points?.[0] ?? []), endsOf(ends, ...columns, points?.[1] ?? [])];
  plot(holder, `Plot of ${labels.y}, ${written(across)}, over ${labels.x}, ${written(along)}`, (width) => {
    const at = frame(width, labels, padded(along, 0), padded(across));
    columns.forEach((ys, j) => at.root.append(svg("path", { class: `line line${j % COLOURS}`, d: path(at, xs, ys) })));
    // A line of one point has no length.
    if (xs.length === 1) columns.forEach((ys) => dots(at, [xs, ys], "dot drawn"));
    dots(at, points);
    if (columns.length === 1 && names[0] === "") return [at.root];
    const series = columns.map((values, j) => ({ name: String(names[j] ?? j), colour: j % COLOURS, values: [values] }));
    return [at.root, legend(at, xs, [...series, ...(points ? [DATA] : [])], labels.x)];
  });
}

/**
 * Draw a line with a band around it.
 *
 * @param {HTMLElement} holder
 * @param {number[]} xs
 * @param {number[]} middle
 * @param {number[]} lower
 * @param {number[]} upper
 * @param {Labels} labels
 * @param {Points} [points]
 * @param {string[]} [names] of the line and of the band
 * @param {Points} [others] points that are drawn faintly
 */
export function bandPlot(holder, xs, middle, lower, upper, labels, points = null, names = ["middle", "band"], others = null) {
  const all = [points, others].filter((x) => x !== null);
  const [along, across] = [endsOf(xs, ...all.map(([x]) => x)), endsOf(middle, lower, upper, ...all.map(([, y]) => y))];
  plot(holder, `Plot of ${labels.y}, ${written(across)}, over ${labels.x}, ${written(along)}`, (width) => {
    const at = frame(width, labels, padded(along, 0), padded(across));
    const back = [...xs.keys()].reverse();
    const outline = path(at, [...xs, ...back.map((i) => xs[i])], [...upper, ...back.map((i) => lower[i])]);
    dots(at, others, "dot faint");
    at.root.append(svg("path", { class: "band", d: outline }));
    dots(at, points);
    at.root.append(svg("path", { class: "line line0", d: path(at, xs, middle) }));
    const series = [{ name: names[0], colour: 0, values: [middle] }, { name: names[1], colour: 0, values: [lower, upper], kind: "area" }];
    const marks = [...(points ? [DATA] : []), ...(others ? [{ ...DATA, name: "data of other groups", kind: "mark faint" }] : [])];
    return [at.root, legend(at, xs, [...series, ...marks], labels.x)];
  });
}

/**
 * Draw how often numbers fall into intervals of equal width.
 *
 * @param {HTMLElement} holder
 * @param {number[]} numbers
 * @param {number} bins
 * @param {string} label
 * @param {Ends | null} [interval] to be marked below the bars
 */
export function histogramPlot(holder, numbers, bins, label, interval = null) {
  const ends = endsOf(numbers);
  const [low, high] = padded(ends, 0);
  const size = (high - low) / bins;
  const counts = new Array(bins).fill(0);
  for (const x of numbers) if (Number.isFinite(x)) counts[Math.min(bins - 1, Math.floor((x - low) / size))] += 1;
  const most = Math.max(...counts);
  plot(holder, `Plot of count, ${written([0, most])}, over ${label}, ${written(ends)}`, (width) => {
    const at = frame(width, { x: label, y: "count" }, [low, high], [0, most * 1.05 || 1]);
    counts.forEach((count, i) => {
      const [left, right] = [at.x(low + i * size), at.x(low + (i + 1) * size)];
      if (count) at.root.append(svg("rect", { class: "bin", x: left, y: at.y(count), width: Math.max(0.5, right - left - 1), height: at.y(0) - at.y(count) }));
    });
    if (interval) at.root.append(svg("line", { class: "interval", x1: at.x(interval[0]), x2: at.x(interval[1]), y1: at.y(0), y2: at.y(0) }));
    return [at.root];
  });
}

/**
 * Draw the density of draws, with an interval below it, and the outline of the density before the data.
 *
 * @param {HTMLElement} holder
 * @param {number[]} numbers
 * @param {string} label
 * @param {Ends} interval
 * @param {{levels: number[], values: number[]} | null} prior its quantiles
 */
export function densityPlot(holder, numbers, label, interval, prior) {
  const drawn = padded(endsOf(numbers), 0);
  const span = drawn[1] - drawn[0];
  const outline = prior ? stepsOf(prior) : [];
  // Of a wide prior, the part around the draws.
  const [first, last] = prior ? [prior.values[2], prior.values[prior.values.length - 3]] : drawn;
  const ends = /** @type {Ends} */ ([Math.min(drawn[0], Math.max(first, drawn[0] - span)), Math.max(drawn[1], Math.min(last, drawn[1] + span))]);
  const size = span / BINS;
  const shares = new Array(BINS).fill(0);
  for (const x of numbers) if (Number.isFinite(x)) shares[Math.min(BINS - 1, Math.floor((x - drawn[0]) / size))] += 1 / (numbers.length * size);
  const most = Math.max(...shares);
  plot(holder, `Plot of ${label}, ${written(endsOf(numbers))}`, (width) => {
    const at = frame(width, { x: "", y: "" }, ends, [0, most * 1.05 || 1], [], LOW_HEIGHT);
    shares.forEach((share, i) => {
      const [left, right] = [at.x(drawn[0] + i * size), at.x(drawn[0] + (i + 1) * size)];
      if (share) at.root.append(svg("rect", { class: "bin", x: left, y: at.y(share), width: Math.max(0.5, right - left - 0.5), height: at.y(0) - at.y(share) }));
    });
    const clipped = outline.filter(([x]) => x >= ends[0] && x <= ends[1]).map(([x, y]) => [x, Math.min(most * 1.05, y)]);
    if (prior) at.root.append(svg("path", { class: "line line1 prior", d: path(at, clipped.map(([x]) => x), clipped.map(([, y]) => y)) }));
    at.root.append(svg("line", { class: "interval", x1: at.x(interval[0]), x2: at.x(interval[1]), y1: at.y(0), y2: at.y(0) }));
    const keys = [element("span", { class: "key area line0" }, "posterior"), element("span", { class: "key line1" }, "prior")];
    return [at.root, ...(prior ? [element("div", { class: "legend", "aria-hidden": "true" }, ...keys)] : [])];
  });
}

/**
 * Return the corners of a density whose quantiles are known: between two of them it is constant, over a few of them.
 *
 * @param {{levels: number[], values: number[]}} quantiles
 */
function stepsOf({ levels, values }) {
  /** @type {[number, number][]} */
  const corners = [];
  const apart = 7;
  for (let i = 0; i + apart < levels.length; i++) {
    const width = values[i + apart] - values[i];
    if (width > 0) corners.push([(values[i] + values[i + apart]) / 2, (levels[i + apart] - levels[i]) / width]);
  }
  return corners;
}

/**
 * Draw a point with an interval for each of several named rows.
 *
 * @param {HTMLElement} holder
 * @param {string[]} names
 * @param {number[]} middles
 * @param {Ends[]} intervals
 * @param {string} label of the numbers
 * @param {Points} [points] further points: the number, and the row
 * @param {Ends[]} [before] intervals before the data
 */
export function forestPlot(holder, names, middles, intervals, label, points = null, before = []) {
  const ends = endsOf(middles, intervals.flat(), points?.[0] ?? []);
  const height = BOTTOM + TOP + 24 * Math.max(2, names.length);
  plot(holder, `Plot of ${label}, ${written(ends)}, of ${names.length} rows`, (width) => {
    const shownEnds = padded(ends, before.length ? 0.2 : 0.05);
    const at = frame(width, { x: label, y: "" }, shownEnds, [names.length - 0.5, -0.5], names, height);
    dots(at, points);
    names.forEach((_, i) => {
      if (before[i]) at.root.append(svg("line", { class: "before", x1: at.x(Math.max(before[i][0], shownEnds[0])), x2: at.x(Math.min(before[i][1], shownEnds[1])), y1: at.y(i), y2: at.y(i) }));
      at.root.append(svg("line", { class: "interval", x1: at.x(intervals[i][0]), x2: at.x(intervals[i][1]), y1: at.y(i), y2: at.y(i) }));
      at.root.append(svg("circle", { class: "middle", cx: at.x(middles[i]), cy: at.y(i), r: 4 }));
    });
    return [at.root];
  });
}

/**
 * Draw shares that add up to one, as the parts of a bar for each of several named rows.
 *
 * @param {HTMLElement} holder
 * @param {string[]} names
 * @param {number[][]} columns the shares of each part, over the rows
 * @param {string[]} parts
 * @param {string} label
 */
export function barPlot(holder, names, columns, parts, label) {
  const height = BOTTOM + TOP + 28 * Math.max(2, names.length);
  plot(holder, `Plot of ${label}, of ${names.length} rows`, (width) => {
    const at = frame(width, { x: label, y: "" }, [0, 1], [names.length - 0.5, -0.5], names, height);
    names.forEach((_, i) => {
      let sum = 0;
      columns.forEach((shares, j) => {
        at.root.append(svg("rect", { class: `part line${j % COLOURS}`, x: at.x(sum), width: at.x(sum + shares[i]) - at.x(sum), y: at.y(i) - 9, height: 18 }, svg("title", {}, `${parts[j]}: ${shown(shares[i], 3)}`)));
        sum += shares[i];
      });
    });
    const keys = parts.map((name, j) => element("span", { class: `key line${j % COLOURS}` }, name));
    return [at.root, element("div", { class: "legend", "aria-hidden": "true" }, ...keys)];
  });
}

/**
 * Draw pairs of numbers, some of them marked.
 *
 * @param {HTMLElement} holder
 * @param {number[]} xs
 * @param {number[]} ys
 * @param {boolean[]} marked
 * @param {Labels} labels
 */
export function pairPlot(holder, xs, ys, marked, labels) {
  const [along, across] = [endsOf(xs), endsOf(ys)];
  plot(holder, `Plot of ${labels.y}, ${written(across)}, over ${labels.x}, ${written(along)}`, (width) => {
    const at = frame(width, labels, padded(along), padded(across));
    for (const isMarked of [false, true]) {
      const kept = [xs, ys].map((values) => values.filter((_, i) => Boolean(marked[i]) === isMarked));
      dots(at, kept, isMarked ? "dot marked" : "dot drawn");
    }
    return [at.root];
  });
}
