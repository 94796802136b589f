/** Start the worker, and load the model in it, while the rest of the page arrives. */

import { embedded } from "./embedded.js";
import { Model } from "./model.js";

export const model = new Model();

/** Description of the page, which `pytensor-onnx web` wrote. @type {Promise<any>} */
export const described = read();

async function read() {
  const inside = embedded("page.json");
  if (inside) return JSON.parse(new TextDecoder().decode(inside));
  const response = await fetch("page.json");
  if (!response.ok) throw new Error(`page.json cannot be loaded: ${response.status} ${response.statusText}`);
  return response.json();
}

/** What is known once the model is loaded. @type {Promise<any>} */
export const loaded = described.then(({ runtime, state }) => model.load(runtime, state));

// The page reports errors once it is there.
loaded.catch(() => {});
