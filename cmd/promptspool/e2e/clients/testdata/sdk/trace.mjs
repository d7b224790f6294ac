// Runs a template and logs a call with tracing on, with promptlayer 1.3.6 as npm has it. Writes what it gave, and what the SDK said, as
// one JSON object.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url); // imported as a module, run of 1.3.6 cannot load any provider's client
const { PromptLayer } = require("promptlayer-1.3.6");
const { trace } = require("@opentelemetry/api");

const said = [];
console.warn = console.error = console.info = console.log = (...text) => said.push(text.join(" "));

const pl = new PromptLayer({ enableTracing: true });
await pl.templates.publish({
  prompt_name: "traced",
  prompt_template: { type: "chat", messages: [{ role: "user", content: [{ type: "text", text: "Hi {n}" }] }] },
  metadata: { model: { provider: "openai", name: "gpt-4o", parameters: {} } },
});

const run = pl.wrapWithSpan(
  "outer",
  async (n) => {
    const { request_id } = await pl.run({ promptName: "traced", inputVariables: { n } });
    return { id: request_id, trace: trace.getActiveSpan().spanContext().traceId };
  },
  { k: "v" },
);
const ran = await run("Ann");

const openai = new pl.OpenAI({ apiKey: "sk-not-a-key" });
const [, logged] = await openai.chat.completions.create({
  model: "gpt-4o",
  messages: [{ role: "user", content: "hello" }],
  return_pl_id: true,
});

// Nobody can wait for the export of a span, but node does not end before.
process.once("beforeExit", () => process.stdout.write(JSON.stringify({ ran, logged, said })));
