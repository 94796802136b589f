import { shown } from "./tensors.js";

/** The library for plots, a script of the page. */
const { uPlot } = /** @type {any} */ (globalThis);

const HEIGHT = 260;
const FONT = "13px system-ui, sans-serif";
const GRID = { grid: { stroke: "rgba(128, 128, 128, 0.25)" }, ticks: { stroke: "rgba(128, 128, 128, 0.25)" } };
const OTHERS = ["#c2571a", "#2c8a4b", "#8b3fa8", "#b08a12", "#b0284f", "#178a94", "#6b7280"];

/** Return a colour of lines, the first of them the accent of the light or dark page. @param {number} i */
const colour = (i) => (i % (OTHERS.length + 1) ? OTHERS[(i - 1) % (OTHERS.length + 1)] : accent());
const accent = () => getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();

/**
 * @typedef {number[][] | null} Points
 * @typedef {{x: string, y: string, isTitled?: boolean}} Labels names of the axes; a title may have that of y already
 */

/** @type {WeakMap<HTMLElement, {plot: any, key: string, points: any, observer: ResizeObserver}>} */
const PLOTS = new WeakMap();

/**
 * Draw or update a plot.
 *
 * @param {HTMLElement} holder
 * @param {string} key what the options depend on
 * @param {Labels} labels
 * @param {() => any} options
 * @param {ArrayLike<number | null>[]} data
 * @param {Points} [points] further points, lists of x and y
 */
function draw(holder, key, labels, options, data, points = null) {
  describe(holder, labels, data);
  const known = PLOTS.get(holder);
  if (known?.key === key) {
    known.points = points;
    known.plot.setData(data);
    return;
  }
  clearPlot(holder);
  const text = getComputedStyle(document.body).color;
  const axis = (/** @type {string} */ label) => ({ label, stroke: text, ...GRID, font: FONT, labelFont: FONT, labelSize: 20, labelGap: 0 });
  const width = Math.max(240, holder.clientWidth || 480);
  const resized = () => holder.clientWidth && PLOTS.get(holder)?.plot.setSize({ width: holder.clientWidth, height: HEIGHT });
  const entry = { plot: /** @type {any} */ (null), key, points, observer: new ResizeObserver(resized) };
  PLOTS.set(holder, entry);
  const fitted = { ...options(), ...(points && withPoints(() => entry.points ?? [[], []])) };
  const scales = { x: { time: false }, ...fitted.scales };
  entry.plot = new uPlot({ width, height: HEIGHT, axes: [{ ...axis(labels.x), size: 32 }, axis(labels.isTitled ? "" : labels.y)], ...fitted, scales }, data, holder);
  entry.observer.observe(holder);
}

/**
 * Say what a plot shows to those who do not see it.
 *
 * @param {HTMLElement} holder
 * @param {Labels} labels
 * @param {ArrayLike<number | null>[]} data
 */
function describe(holder, { x, y }, [at, ...columns]) {
  const ends = (/** @type {ArrayLike<number | null>[]} */ arrays) => {
    let [low, high] = [Infinity, -Infinity];
    for (const array of arrays) for (let i = 0; i < array.length; i++) [low, high] = [Math.min(low, array[i] ?? low), Math.max(high, array[i] ?? high)];
    return low > high ? "no numbers" : `${shown(low, 3)} to ${shown(high, 3)}`;
  };
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", `Plot of ${y}, ${ends(columns)}, over ${x}, ${ends([at])}`);
}

/** The value of a series under the pointer, nothing elsewhere. @param {any} _ @param {number | null} x */
const value = (_, x) => (x === null || x === undefined ? "" : shown(x));

/**
 * Return the options of a plot that shows points too, within its scales.
 *
 * @param {() => number[][]} points
 */
function withPoints(points) {
  /** @param {number} axis @param {boolean} isPadded */
  const range = (axis, isPadded) => (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => {
    for (const z of points()[axis]) [low, high] = [Math.min(low, z), Math.max(high, z)];
    return isPadded ? uPlot.rangeNum(low, high, 0.1, true) : [low, high];
  };
  const dots = (/** @type {any} */ u) => {
    const [xs, ys] = points();
    u.ctx.save();
    u.ctx.fillStyle = OTHERS[0];
    for (let i = 0; i < xs.length; i++) {
      u.ctx.beginPath();
      u.ctx.arc(u.valToPos(xs[i], "x", true), u.valToPos(ys[i], "y", true), 2.5 * devicePixelRatio, 0, 2 * Math.PI);
      u.ctx.fill();
    }
    u.ctx.restore();
  };
  return { hooks: { draw: [dots] }, scales: { x: { time: false, range: range(0, false) }, y: { range: range(1, true) } } };
}

/**
 * Remove the plot of an element.
 *
 * @param {HTMLElement} holder
 */
export function clearPlot(holder) {
  const known = PLOTS.get(holder);
  known?.observer.disconnect();
  known?.plot.destroy();
  PLOTS.delete(holder);
}

/**
 * Draw lines over common positions.
 *
 * @param {HTMLElement} holder
 * @param {number[]} x
 * @param {number[][]} columns
 * @param {string[]} names
 * @param {Labels} labels
 * @param {Points} [points]
 */
export function linePlot(holder, x, columns, names, labels, points) {
  const series = columns.map((_, j) => ({ label: String(names[j] ?? j), stroke: colour(j), width: 2, value }));
  draw(holder, `lines ${columns.length}`, labels, () => ({ series: [{ label: labels.x, value }, ...series] }), [x, ...columns.map(finite)], points);
}

/**
 * Draw a line with a band around it.
 *
 * @param {HTMLElement} holder
 * @param {number[]} x
 * @param {number[]} middle
 * @param {number[]} lower
 * @param {number[]} upper
 * @param {Labels} labels
 * @param {Points} [points]
 */
export function bandPlot(holder, x, middle, lower, upper, labels, points) {
  const edge = { stroke: `${accent()}66`, width: 1, value };
  const options = () => ({
    series: [{ label: labels.x, value }, { label: "middle", stroke: accent(), width: 2, value }, { label: "upper", ...edge }, { label: "lower", ...edge }],
    bands: [{ series: [2, 3], fill: `${accent()}33` }],
  });
  draw(holder, "band", labels, options, [x, middle, upper, lower].map(finite), points);
}

/**
 * Draw how often numbers fall into intervals of equal width.
 *
 * @param {HTMLElement} holder
 * @param {number[]} numbers
 * @param {number} bins
 * @param {string} label
 */
export function histogramPlot(holder, numbers, bins, label) {
  const known = numbers.filter(Number.isFinite);
  let [low, high] = [Infinity, -Infinity];
  for (const x of known) [low, high] = [Math.min(low, x), Math.max(high, x)];
  const width = (high - low) / bins || 1;
  const counts = new Array(bins).fill(0);
  for (const x of known) counts[Math.min(bins - 1, Math.floor((x - low) / width))] += 1;
  const middles = counts.map((_, i) => low + (i + 0.5) * width);
  const paths = uPlot.paths.bars({ size: [1, 100] });
  const series = [{ label, value }, { label: "count", stroke: accent(), fill: `${accent()}66`, paths, points: { show: false }, value }];
  // Half a bar stands beyond the first and the last middle.
  const range = (/** @type {any} */ u, /** @type {number} */ from, /** @type {number} */ to) => {
    const half = u.data[0].length > 1 ? (u.data[0][1] - u.data[0][0]) / 2 : 0;
    return [from - half, to + half];
  };
  const options = () => ({ series, scales: { x: { time: false, range } } });
  draw(holder, "histogram", { x: label, y: "count" }, options, known.length ? [middles, counts] : [[], []]);
}

/** @param {number[]} numbers */
const finite = (numbers) => numbers.map((x) => (Number.isFinite(x) ? x : null));
