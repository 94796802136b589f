/** Bytes of a text that is typed, or of a file. */

import { acceptDrops, element, panel } from "./dom.js";
import { tensor } from "./tensors.js";

const EXAMPLE = `def mean(numbers):
    """Return the mean of numbers."""
    return sum(numbers) / len(numbers)

print(mean([3, 1, 2]))
`;
const SPACES = new Set([9, 10, 11, 12, 13, 32]);

/**
 * The first and the last bytes of a text or of a file, as numbers.
 *
 * @type {(input: import("./controls.js").Input, changed: () => void) => import("./controls.js").Control}
 */
export function bytes(input, changed) {
  const { label, value = EXAMPLE } = input.control;
  const text = element("textarea", { spellcheck: false, "aria-label": label });
  text.value = value;
  const told = element("p", { class: "hint", role: "status" }, "Example: a text. Type another, or open a file.");
  /** Content of a file, null while the text counts. @type {Uint8Array | null} */
  let content = null;
  text.addEventListener("input", () => {
    content = null;
    told.textContent = "The text that is typed.";
    changed();
  });
  const take = async (/** @type {File} */ file) => {
    content = new Uint8Array(await file.arrayBuffer());
    const isText = !content.subarray(0, 4096).includes(0);
    text.value = isText ? new TextDecoder().decode(content.subarray(0, 4096)) : "";
    told.textContent = `${file.name}, ${content.length.toLocaleString("en")} bytes${isText ? "" : ", which are no text"}.`;
    changed();
  };
  const chooser = element("input", { type: "file", "aria-label": `${label}, file` });
  chooser.addEventListener("change", () => chooser.files[0] && take(chooser.files[0]));
  const made = panel(label, text, told, element("div", { class: "actions" }, chooser));
  acceptDrops(made, take);
  const size = Number(input.dims.at(-1));
  return {
    element: made,
    wish: "Type a text, or open a file.",
    read: () => {
      const given = content ?? new TextEncoder().encode(text.value);
      if (!given.length) return null;
      return tensor(input.dtype, endsOf(given, size, input.control), input.dims.map((n) => n ?? 1));
    },
    save: () => text.value,
    restore: (saved) => (text.value = saved),
  };
}

/**
 * Return as many numbers as a model takes: the first bytes and, if `last` is given, the last ones, without the spaces
 * around them, and the padding where there are fewer.
 *
 * @param {Uint8Array} content
 * @param {number} size
 * @param {{first?: number, last?: number, padding?: number}} options
 */
export function endsOf(content, size, { first, last = 0, padding = 0 }) {
  const numbers = new Array(size).fill(padding);
  let [from, to] = [0, content.length];
  if (last) {
    while (from < to && SPACES.has(content[from])) from++;
    while (to > from && SPACES.has(content[to - 1])) to--;
  }
  const begin = content.subarray(from, Math.min(to, from + (first ?? size - last)));
  begin.forEach((x, i) => (numbers[i] = x));
  const end = content.subarray(Math.max(from, to - last), last ? to : from);
  end.forEach((x, i) => (numbers[size - end.length + i] = x));
  return numbers;
}
