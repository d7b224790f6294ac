// Runs templates with two releases of the hosted service's JavaScript SDK as npm has them, with the providers' own clients. Reads the name
// of a phase from each line of stdin, and writes what every call of that phase gave on one line, as a JSON object.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url); // imported as a module, run of 1.3.6 cannot load any provider's client
const { PromptLayer: Old } = require("promptlayer");
const { PromptLayer: New } = require("promptlayer-1.3.6");

let said = []; // that an attempt failed, for one
console.warn = console.info = console.log = (text) => said.push(String(text));

const sdks = { old: new Old(), new: new New() };
const model = (provider, name, parameters) => ({ model: { provider, name, parameters } });
const chat = (text) => ({ type: "chat", messages: [{ role: "user", content: [{ type: "text", text }] }] });
const publish = (prompt_name, metadata) =>
  sdks.new.templates.publish({ prompt_name, prompt_template: chat("Hi {n}"), metadata, release_labels: ["prod"] });

// last gives the last item of a stream: the one with the request's id.
const last = async (stream) => {
  let item;
  for await (item of stream);
  return item;
};

const streamed = { stream: true, metadata: undefined }; // with metadata, streams of both fail in the SDK itself
const run = (pl, promptName, more) =>
  pl.run({ promptName, promptReleaseLabel: "prod", inputVariables: { n: "Ann" }, tags: ["run"], metadata: { user: "ann" }, ...more });

const steps = {
  up: {
    openai: (pl) => run(pl, "run/openai"),
    openaiStreamed: async (pl) => last(await run(pl, "run/openai", streamed)),
    anthropic: (pl) => run(pl, "run/anthropic"),
    anthropicStreamed: async (pl) => last(await run(pl, "run/anthropic", streamed)),
    overridden: (pl) => run(pl, "run/openai", { provider: "anthropic", model: "claude-haiku-4-5" }),
    tracked: async (pl) => {
      const { request_id } = await run(pl, "run/openai");
      const group_id = await pl.group.create();
      await pl.track.score({ request_id, score: 77 });
      await pl.track.metadata({ request_id, metadata: { plan: "pro" } });
      await pl.track.group({ request_id, group_id });
      return { request_id, group_id };
    },
  },
  away: {
    openai: (pl) => run(pl, "run/openai"),
    anthropicStreamed: async (pl) => last(await run(pl, "run/anthropic", streamed)),
    all: (pl) => pl.templates.all({ page: 1, per_page: 30 }),
  },
  back: { openai: (pl) => run(pl, "run/openai") },
};

for await (const phase of createInterface({ input: process.stdin })) {
  const told = {};
  if (phase === "up") {
    await publish("run/openai", model("openai", "gpt-4o", { temperature: 0.5 }));
    await publish("run/anthropic", model("anthropic", "claude-next", { max_tokens: 9 }));
  }
  for (const [sdk, pl] of Object.entries(sdks))
    for (const [name, step] of Object.entries(steps[phase])) {
      said = [];
      const result = {};
      try {
        result.value = await step(pl);
      } catch (e) {
        result.error = String(e.stack);
      }
      told[`${sdk} ${name}`] = { ...result, said };
    }
  process.stdout.write(JSON.stringify(told) + "\n");
}
process.exit();
