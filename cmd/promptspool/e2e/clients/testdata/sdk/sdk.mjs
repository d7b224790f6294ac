// Does what an app does with the hosted service's JavaScript SDK, against PROMPTLAYER_API_URL with PROMPTLAYER_API_KEY, and a model at
// OPENAI_BASE_URL. Writes what every call gave, and what the SDK warned of, as one JSON object.
import { PromptLayer } from "promptlayer";

const told = {};
let warnings = [];
console.warn = (text) => warnings.push(String(text));

// step keeps what a call gave, or how it failed, with its warnings.
const step = async (name, call) => {
  warnings = [];
  const result = {};
  try {
    result.value = (await call()) ?? null;
  } catch (e) {
    result.error = e.message;
  }
  told[name] = { ...result, warnings };
  return result.value;
};

const pl = new PromptLayer();
const chat = (text) => ({ type: "chat", messages: [{ role: "user", content: [{ type: "text", text }] }] });
const metadata = { model: { provider: "openai", name: "gpt-4o", parameters: { temperature: 0.5 } } };
const publish = (text, more) => pl.templates.publish({ prompt_name: "team/sdk", prompt_template: chat(text), metadata, commit_message: text, tags: ["sdk"], ...more });

await step("publish", () => publish("Hi {n}", { release_labels: ["prod"] }));
await step("publishAgain", () => publish("Good day {n}"));
await step("latest", () => pl.templates.get("team/sdk", { provider: "openai", input_variables: { n: "Ann" } }));
await step("byLabel", () => pl.templates.get("team/sdk", { label: "prod", provider: "openai", input_variables: { n: "Ann" } }));
await step("byVersion", () => pl.templates.get("team/sdk", { version: 1 }));
await step("bare", () => pl.templates.get("team/sdk"));
await step("missingVariable", () => pl.templates.get("team/sdk", { provider: "openai", input_variables: {} }));
await step("all", () => pl.templates.all({ page: 1, per_page: 5 }));

const group = await step("group", () => pl.group.create());
const openai = new pl.OpenAI({ apiKey: "sk-not-a-key" });
const messages = [{ role: "user", content: "hello" }];
const [, id] = await step("log", () => openai.chat.completions.create({ model: "gpt-4o", messages, pl_tags: ["t1"], return_pl_id: true }));
await step("score", () => pl.track.score({ request_id: id, score: 77 }));
await step("metadata", () => pl.track.metadata({ request_id: id, metadata: { user: "ann" } }));
await step("prompt", () => pl.track.prompt({ request_id: id, prompt_name: "team/sdk", prompt_input_variables: { n: "Ann" }, label: "prod" }));
await step("trackGroup", () => pl.track.group({ request_id: id, group_id: group }));
await step("stream", async () => {
  let streamed = null;
  for await (const part of await openai.chat.completions.create({ model: "gpt-4o", messages, stream: true, return_pl_id: true })) streamed = part[1] ?? streamed;
  return streamed;
});
await step("run", async () => (await pl.run({ promptName: "team/sdk", promptReleaseLabel: "prod", inputVariables: { n: "Bob" }, tags: ["run"], metadata: { user: "bob" }, groupId: group })).request_id);
await step("logRequest", () => pl.logRequest({ provider: "openai", model: "gpt-4o", input: chat("hello"), output: chat("hey"), request_start_time: 1700000000, request_end_time: 1700000001, tags: ["blueprint"], score: 5 }));

await step("noTemplate", () => pl.templates.get("team/none"));
await step("noLabel", () => pl.templates.get("team/sdk", { label: "none" }));
await step("badTemplate", () => pl.templates.publish({ prompt_name: "bad", prompt_template: { type: "chat", messages: [{ role: "nobody" }] } }));
await step("badScore", () => pl.track.score({ request_id: "no id", score: 5 }));
const stranger = new PromptLayer({ apiKey: "a key that nobody has" });
await step("strangersTemplate", () => stranger.templates.get("team/sdk"));
await step("strangersScore", () => stranger.track.score({ request_id: id, score: 5 }));
await step("strangersGroup", () => stranger.group.create());
await step("strangersLog", () => new stranger.OpenAI({ apiKey: "sk-not-a-key" }).chat.completions.create({ model: "gpt-4o", messages }));

process.stdout.write(JSON.stringify(told), () => process.exit());
