// Run requests from a file in onnxruntime-web and print one answer a line: why it failed, or nothing.
// A request with "values" is answered by its outputs.
// node probe_worker.mjs NODE_MODULES REQUESTS START

import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

import { fromBytes } from "../src/pytensor_onnx/web/static/tensors.js";

const [folder, requests, start] = process.argv.slice(2);
const require = createRequire(resolve(folder, "probe.js"));
const ort = require("onnxruntime-web");

function tensor([type, dims, data]) {
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  return new ort.Tensor(type, fromBytes(type, bytes.buffer, dims).data, dims);
}

function plain({ type, dims, data }) {
  return [type, dims, Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64")];
}

async function answer(request) {
  let session;
  try {
    const model = new Uint8Array(Buffer.from(request.model, "base64"));
    session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], logSeverityLevel: 4 });
    const inputs = Object.entries(request.inputs).map(([name, value]) => [name, tensor(value)]);
    const results = await session.run(Object.fromEntries(inputs));
    for (const { name, type } of session.outputMetadata) {
      if (results[name].type !== type) return `${name} is ${results[name].type} where ${type} is declared`;
    }
    if (!request.values) return "";
    return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, plain(value)]));
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) process.exit(1);
    return String(error.message ?? error).split("\n")[0] || "failed";
  } finally {
    await session?.release();
  }
}

function print(text) {
  writeSync(1, text + "\n");
}

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";
console.log = console.warn = console.error = () => {};
print(ort.env.versions.web);
for (const line of readFileSync(requests, "utf8").split("\n").slice(Number(start))) {
  if (line) print(JSON.stringify(await answer(JSON.parse(line))));
}
process.exit(0);
