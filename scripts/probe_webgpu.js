// Runs one model on WebGPU alone; `answer` returns its outputs, or why it failed.

import * as ort from "./ort.webgpu.min.mjs";
import { fromBytes } from "./tensors.js";

const OPTIONS = {
  executionProviders: ["webgpu"],
  logSeverityLevel: 4,
  extra: { session: { disable_cpu_ep_fallback: "1" } },
};
const SECONDS = 30;

ort.env.wasm.wasmPaths = new URL("./", import.meta.url).href;
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function tensor([type, dims, data]) {
  return new ort.Tensor(type, fromBytes(type, bytes(data).buffer, dims).data, dims);
}

function plain({ type, dims, data }) {
  const view = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return [type, [...dims], btoa(String.fromCharCode(...view))];
}

async function run(request) {
  let session;
  try {
    session = await ort.InferenceSession.create(bytes(request.model), OPTIONS);
    const inputs = Object.entries(request.inputs).map(([name, value]) => [name, tensor(value)]);
    const results = await session.run(Object.fromEntries(inputs));
    return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, plain(value)]));
  } catch (error) {
    return String(error.message ?? error).split("\n")[0] || "failed";
  } finally {
    await session?.release();
  }
}

window.answer = async (request) => {
  const late = new Promise((resolve) => setTimeout(resolve, 1000 * SECONDS, "no answer in time"));
  return Promise.race([run(request), late]);
};
