// What apps do with the helper of the page log-javascript; see case.py.
import assert from "node:assert";
import { log, send } from "./spool.mjs";

const ids = [];
const waits = [];

async function timed(kwargs, make) {
  const began = performance.now();
  try {
    const [answer, id] = await log("openai.chat.completions.create", kwargs, make, { tags: ["case"] });
    ids.push(id);
    return answer;
  } finally {
    waits.push(performance.now() - began);
  }
}

async function* chunks() {
  yield { choices: [{ index: 0, delta: { content: "He" } }] };
  yield { choices: [{ index: 0, delta: { content: "llo" } }] };
}

// Values that JSON does not know.
await timed({ model: "m", when: new Date(0), n: 10n, call() {}, set: new Set([1]), data: Buffer.from("x") },
  async () => ({ answer: new Map([["a", 1]]) }));
// A stream that is read, and one that is left.
const read = [];
for await (const chunk of await timed({ model: "m", stream: true }, chunks)) read.push(chunk);
assert.equal(read.length, 2);
for await (const _ of await timed({ model: "m", stream: true }, chunks)) break;
// A call that fails fails as before.
await assert.rejects(timed({ model: "m" }, async () => { throw new RangeError("the model is overloaded"); }));
// An answer that refers to itself cannot be logged, and harms nothing.
const circle = {};
circle.me = circle;
await timed({ model: "m" }, async () => circle);
// A stream that cannot be watched is not read either.
const frozen = Object.freeze(chunks());
assert.equal(await timed({ model: "m", stream: true }, async () => frozen), frozen);
// A score needs no answer.
send("/rest/track-score", { request_id: ids[0], score: 1 });
// More than fits.
const score = "1".repeat(Number(process.argv[3]));
for (let n = 0; n < Number(process.argv[2]); n++) send("/rest/track-score", { request_id: ids[0], score });

const ordinary = [];
for (let n = 0; n < 20; n++) {
  const began = performance.now();
  await log("f", { model: "m" }, async () => ({ answer: "yes" }));
  ordinary.push(performance.now() - began);
}
ordinary.sort((a, b) => a - b);
console.log(JSON.stringify({ ids, median_ms: ordinary[10], slowest_ms: Math.max(...waits, ...ordinary) }));
