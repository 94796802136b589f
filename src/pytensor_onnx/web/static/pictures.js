import { acceptDrops, element, panel } from "./dom.js";
import { tensor } from "./tensors.js";

const PAD = 280;
/** Pixels of the width that small images are shown with at least. */
const ENLARGED = 320;

/**
 * A pad to draw a grey image on, white on black.
 *
 * @type {(input: import("./controls.js").Input, changed: () => void) => import("./controls.js").Control}
 */
export function drawing(input, changed) {
  const { label, scale = 1 } = input.control;
  const [height, width] = imageSizes(input);
  const pad = element("canvas", { class: "pad", width: PAD, height: PAD, tabindex: 0, role: "img" });
  pad.setAttribute("aria-label", `${label}: draw with the pointer, or with arrow keys and space`);
  const pen = /** @type {CanvasRenderingContext2D} */ (pad.getContext("2d", { willReadFrequently: true }));
  const clear = () => {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, PAD, PAD);
    isEmpty = true;
    changed();
  };
  let isEmpty = true;
  /** @type {[number, number]} */
  let place = [PAD / 2, PAD / 2];
  /** @param {[number, number]} end */
  const stroke = (end) => {
    pen.strokeStyle = "#fff";
    pen.lineCap = "round";
    pen.lineWidth = PAD / 11;
    pen.beginPath();
    pen.moveTo(...place);
    pen.lineTo(...end);
    pen.stroke();
    place = end;
    isEmpty = false;
    changed();
  };
  /** @param {PointerEvent} event @returns {[number, number]} */
  const position = (event) => {
    const box = pad.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * PAD, ((event.clientY - box.top) / box.height) * PAD];
  };
  pad.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    pad.setPointerCapture(event.pointerId);
    place = position(event);
    stroke(place);
  });
  pad.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (event.buttons) stroke(position(event));
  });
  pad.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    /** @type {[number, number]} */
    const end = [place[0] + (move[0] * PAD) / 16, place[1] + (move[1] * PAD) / 16];
    const inside = /** @type {[number, number]} */ (end.map((at) => Math.min(PAD, Math.max(0, at))));
    if (event.shiftKey) place = inside;
    else stroke(inside);
  });
  clear();
  const button = element("button", { type: "button", onclick: clear }, "Clear");
  const hint = element("p", { class: "hint" }, "Draw with the pointer, or with the arrow keys (with Shift the pen is up).");
  return {
    wish: "Draw something on the black field.",
    element: panel(label, pad, hint, element("div", { class: "actions" }, button)),
    read: () => (isEmpty ? null : grey(centred(pad, height, width), input, scale)),
  };
}

/**
 * Scale what is drawn so that it fills the image, as scanned digits do, with its mass in the middle.
 *
 * @param {HTMLCanvasElement} pad
 * @param {number} height
 * @param {number} width
 */
function centred(pad, height, width) {
  const context = /** @type {CanvasRenderingContext2D} */ (pad.getContext("2d"));
  const { data } = context.getImageData(0, 0, PAD, PAD);
  let [left, right, top, bottom] = [PAD, 0, PAD, 0];
  for (let y = 0; y < PAD; y++) {
    for (let x = 0; x < PAD; x++) {
      if (data[4 * (y * PAD + x)] > 64) {
        [left, right] = [Math.min(left, x), Math.max(right, x)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      }
    }
  }
  const side = Math.max(right - left, bottom - top, 1) * 1.15;
  const small = new OffscreenCanvas(width, height);
  const target = /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext("2d", { willReadFrequently: true }));
  target.fillStyle = "#000";
  target.fillRect(0, 0, width, height);
  target.imageSmoothingQuality = "high";
  const [x, y] = [(left + right - side) / 2, (top + bottom - side) / 2];
  target.drawImage(pad, x, y, side, side, 0, 0, width, height);
  return target.getImageData(0, 0, width, height).data;
}

/**
 * @param {Uint8ClampedArray} pixels
 * @param {import("./controls.js").Input} input
 * @param {number} scale
 */
function grey(pixels, input, scale) {
  const numbers = [];
  for (let i = 0; i < pixels.length; i += 4) numbers.push((pixels[i] / 255) * scale);
  return tensor(input.dtype, numbers, input.dims.map((n) => n ?? 1));
}

/**
 * An image from a file, dropped or chosen, or from the camera.
 *
 * @type {(input: import("./controls.js").Input, changed: () => void) => import("./controls.js").Control}
 */
export function image(input, changed) {
  const { label, scale = 1, example, layout, mean = [0, 0, 0], std = [1, 1, 1] } = input.control;
  const isLast = layout === "last";
  const [height, width] = imageSizes(input);
  const channels = input.dims.length === 4 && !isLast ? (input.dims[1] ?? 3) : 3;
  /** Position of a pixel in the array of a channel. @param {number} c @param {number} i */
  const place = (c, i) => (isLast ? 3 * i + c : c * width * height + i);
  // The page shows more pixels than the model takes, where these are few.
  const by = Math.max(1, Math.ceil(ENLARGED / width));
  const canvas = element("canvas", { width: by * width, height: by * height, role: "img", "aria-label": label });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const small = new OffscreenCanvas(width, height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext("2d", { willReadFrequently: true }));
  context.imageSmoothingQuality = "high";
  const problem = element("p", { class: "hint", role: "alert" });
  let isEmpty = true;
  /** The picture that was opened, and its sizes. @type {{source: CanvasImageSource, w: number, h: number} | null} */
  let opened = null;
  const [zoom, across, down] = [["Zoom", 1, 8, 1], ["From the left", 0, 1, 0.5], ["From the top", 0, 1, 0.5]].map(([name, min, max, value]) =>
    element("input", { type: "range", min, max, step: 0.01, value, "aria-label": name, oninput: () => draw() }),
  );
  const rows = [zoom, across, down].map((input) => element("div", { class: "row" }, element("label", {}, input.ariaLabel), input));
  const part = element("details", { hidden: true }, element("summary", {}, "Cut out a part"), ...rows);
  const draw = () => {
    if (!opened) return;
    const { source, w, h } = opened;
    const fit = Math.min(width / w, height / h) * Number(zoom.value);
    const free = [width - w * fit, height - h * fit];
    const [x, y] = [across, down].map((input, i) => free[i] * (free[i] < 0 ? Number(input.value) : 0.5));
    for (const [target, k] of /** @type {const} */ ([[pen, by], [context, 1]])) {
      target.fillStyle = "#727272";
      target.fillRect(0, 0, k * width, k * height);
      target.drawImage(source, k * x, k * y, k * w * fit, k * h * fit);
    }
    isEmpty = false;
    problem.textContent = "";
    changed();
  };
  /** @param {CanvasImageSource} source @param {number} w @param {number} h */
  const show = (source, w, h) => {
    // Those of a camera are gone when it stops.
    const kept = new OffscreenCanvas(w, h);
    /** @type {OffscreenCanvasRenderingContext2D} */ (kept.getContext("2d")).drawImage(source, 0, 0);
    opened = { source: kept, w, h };
    [zoom.value, across.value, down.value] = ["1", "0.5", "0.5"];
    part.hidden = false;
    draw();
  };
  /** @param {Blob} file */
  const open = async (file) => {
    try {
      const picture = await createImageBitmap(file);
      show(picture, picture.width, picture.height);
    } catch {
      problem.textContent = `${/** @type {File} */ (file).name ?? "this"} is not an image that the browser can read.`;
    }
  };
  const chooser = element("input", { type: "file", accept: "image/*", "aria-label": `${label}, file` });
  chooser.addEventListener("change", () => chooser.files[0] && open(chooser.files[0]));
  const camera = element("button", { type: "button" }, "Camera");
  camera.addEventListener("click", () => photograph(show).catch((error) => (problem.textContent = `No camera: ${error.message}`)));
  const made = panel(label, element("p", { class: "hint" }, "Choose an image, or drop one here."), canvas, part, problem);
  made.append(element("div", { class: "actions" }, chooser, navigator.mediaDevices ? camera : ""));
  acceptDrops(made, open);
  if (example?.numbers) {
    const pixels = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = Math.round((255 / scale) * (mean[c] + std[c] * example.numbers[place(channels === 3 ? c : 0, i)]));
      pixels.data[4 * i + 3] = 255;
    }
    context.putImageData(pixels, 0, 0);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(small, 0, 0, canvas.width, canvas.height);
    isEmpty = false;
  } else if (example) fetch(example).then((response) => response.blob()).then(open);
  return {
    element: made,
    picture: () => canvas,
    width,
    wish: "Choose an image, or drop one on the page.",
    read: () => {
      if (isEmpty) return null;
      const { data } = context.getImageData(0, 0, width, height);
      const area = width * height;
      const numbers = new Float32Array(channels * area);
      for (let c = 0; c < channels; c++) {
        for (let i = 0; i < area; i++) numbers[place(c, i)] = ((data[4 * i + c] / 255) * scale - mean[c]) / std[c];
      }
      return tensor(input.dtype, numbers, isLast ? [1, height, width, 3] : [1, channels, height, width].slice(-input.dims.length));
    },
  };
}

/** @param {(source: HTMLVideoElement, width: number, height: number) => void} show */
async function photograph(show) {
  const stream = await navigator.mediaDevices.getUserMedia({ video: true });
  const video = document.createElement("video");
  video.srcObject = stream;
  await video.play();
  show(video, video.videoWidth, video.videoHeight);
  stream.getTracks().forEach((track) => track.stop());
}

/**
 * Height and width: the last two axes, or a square of the last.
 *
 * @param {import("./controls.js").Input} input
 */
function imageSizes({ dims, control }) {
  if (control.size) return [control.size[0], control.size[1]];
  if (control.layout === "last") return [Number(dims[1]), Number(dims[2])];
  if (dims.length >= 3) return [Number(dims.at(-2)), Number(dims.at(-1))];
  const side = Math.round(Math.sqrt(Number(dims.at(-1))));
  return [side, side];
}
