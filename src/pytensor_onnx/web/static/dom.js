/**
 * Make an element; text is never markup.
 *
 * @param {string} tag
 * @param {Record<string, any>} [attributes] attributes, and properties such as onclick
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/** Return a name as words. @param {string} name */
export const words = (name) => name.replaceAll("_", " ").trim();

/**
 * Make a titled panel.
 *
 * @param {string} title
 * @param {...(Node | string)} children
 */
export function panel(title, ...children) {
  return element("div", { class: "panel" }, element("h2", {}, title), ...children);
}

/**
 * Show a picture in a canvas of its size, and return what draws on it.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLCanvasElement} source
 */
export function picturePen(canvas, source) {
  canvas.width = source.width;
  canvas.height = source.height;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(source, 0, 0, canvas.width, canvas.height);
  return pen;
}

/**
 * Let files be dropped on an element.
 *
 * @param {HTMLElement} target
 * @param {(file: File) => void} take
 */
export function acceptDrops(target, take) {
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    target.classList.add("over");
  });
  target.addEventListener("dragleave", () => target.classList.remove("over"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}
