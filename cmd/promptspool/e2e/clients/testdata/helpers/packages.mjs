// Streams of the providers' own packages, through the helper of the page log-javascript: read,
// left, and read on by the package itself. The first argument is the address of a provider.
import assert from "node:assert";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { flush, log } from "./spool.mjs";

const [, , baseURL] = process.argv;
const openai = new OpenAI({ apiKey: "k", baseURL });
const anthropic = new Anthropic({ apiKey: "k", baseURL });
const kwargs = { model: "m", messages: [], stream: true, max_tokens: 9 };
const ask = async (call) => (await log("openai.chat.completions.create", kwargs, call))[0];

let chunks = 0;
for await (const _ of await ask((k) => openai.chat.completions.create(k))) chunks++;
for await (const _ of await ask((k) => openai.chat.completions.create(k))) break;
for await (const _ of (await ask((k) => openai.chat.completions.create(k))).toReadableStream()) chunks++;
for await (const _ of await ask((k) => anthropic.messages.create(k))) chunks++;
assert.equal(chunks, 7);
assert.equal(await flush(), 0);
