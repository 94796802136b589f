/** What a network says of a sound over time, and points on an image. */

import { element, panel, picturePen } from "./dom.js";
import { clearPlot, linePlot } from "./plots.js";
import { percentage, shown } from "./tensors.js";

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Share from which a window counts as one of the class. */
const LIKELY = 0.5;
/** Lines of a plot at most. */
const MOST = 8;

/**
 * Numbers of successive windows over the seconds, and for a probability where it is large.
 *
 * @param {import("./views.js").Output} output
 * @returns {import("./views.js").View}
 */
export function timeline(output) {
  const { label, step, percent, labels = [] } = output.view;
  const plot = element("div", { class: "plot" });
  const told = element("p", { class: "result" });
  return {
    element: panel(percent ? `Probability of ${label.toLowerCase()}` : label, told, plot),
    show: (results) => {
      const { numbers, dims } = results[output.name];
      const count = dims[0];
      const width = count ? numbers.length / count : 0;
      // A window says something of its end.
      const at = Array.from({ length: count }, (_, i) => (i + 1) * step);
      const columns = Array.from({ length: Math.min(MOST, width) }, (_, j) => at.map((_, i) => numbers[i * width + j]));
      const names = width === 1 ? [label] : columns.map((_, j) => String(labels[j] ?? j));
      linePlot(plot, at, columns, names, { x: "seconds", y: percent ? "probability" : label, isTitled: true }, null, percent ? [0, 1] : []);
      if (!percent || width !== 1) return;
      const likely = numbers.filter((x) => x > LIKELY).length;
      const first = numbers.findIndex((x) => x > LIKELY);
      told.textContent = likely
        ? `${capital(label)} in ${shown(likely * step, 2)} of ${shown(count * step, 2)} seconds, first at ${shown(first * step, 2)} s (the largest probability is ${percentage(Math.max(...numbers))}).`
        : `No ${label.toLowerCase()} in ${shown(count * step, 2)} seconds (the largest probability is ${percentage(Math.max(...numbers))}).`;
    },
    clear: () => {
      clearPlot(plot);
      told.textContent = "";
    },
  };
}

/**
 * Points on an image: first all places from the left, then all from the top, as shares of its width and height.
 *
 * @param {import("./views.js").Output} output
 * @param {import("./views.js").Page} page
 * @returns {import("./views.js").View}
 */
export function points(output, { picture }) {
  const { label, labels = [], image } = output.view;
  const drawn = element("canvas", { role: "img", "aria-label": label });
  const list = element("p", { class: "hint" });
  return {
    element: panel(label, drawn, list),
    show: (results) => {
      const source = picture(image);
      if (!source) return;
      const pen = picturePen(drawn, source);
      const { numbers } = results[output.name];
      const count = numbers.length / 2;
      const radius = drawn.width / 50;
      for (let i = 0; i < count; i++) {
        const [x, y] = [numbers[i] * drawn.width, numbers[count + i] * drawn.height];
        pen.beginPath();
        pen.arc(x, y, radius, 0, 2 * Math.PI);
        pen.fillStyle = "#ffd84d";
        pen.fill();
        pen.lineWidth = radius / 3;
        pen.strokeStyle = "#1c2430";
        pen.stroke();
      }
      const named = labels.map((/** @type {string} */ name, /** @type {number} */ i) => `${name} ${[i, count + i].map((k) => Math.round(100 * numbers[k])).join(", ")}`);
      list.textContent = named.length ? `In % from the left and from the top: ${named.join("; ")}.` : "";
    },
    clear: () => {
      drawn.width = drawn.height = 0;
      list.textContent = "";
    },
  };
}
