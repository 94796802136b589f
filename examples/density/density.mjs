// Read a log-density and its gradient from a file, and climb to a mode.
import * as ort from "onnxruntime-node";

const session = await ort.InferenceSession.create("eight_schools.onnx");
const vector = (values) => new ort.Tensor("float64", Float64Array.from(values), [values.length]);
const data = {
  effects: vector([28, 8, -3, 7, -1, 1, 18, 12]),
  errors: vector([15, 10, 16, 11, 9, 11, 10, 18]),
};
const density = (point) => session.run({ point: vector(point), ...data });

// mu, the logarithm of tau, and z of each school.
let point = new Array(10).fill(0.5);
const first = await density(point);
console.log(JSON.stringify({ logp: first.logp.data[0], gradient: [...first.dlogp.data] }));
for (let i = 0; i < 2000; i++) {
  const { dlogp } = await density(point);
  point = point.map((x, j) => x + 0.1 * dlogp.data[j]);
}
const last = await density(point);
console.log(JSON.stringify({ logp: last.logp.data[0], mu: last.mu.data[0], tau: last.tau.data[0] }));
