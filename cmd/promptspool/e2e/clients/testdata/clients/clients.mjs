// Reads [{name, provider, kwargs}] from stdin and makes each call with the provider's own client, against the listener whose URL is
// the first argument: /NAME/... is the base URL of a call. Writes {name: error} of those that the client refused.
import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { CohereClientV2 } from "cohere-ai";
import OpenAI, { AzureOpenAI } from "openai";
import { text } from "node:stream/consumers";

// camel is what the hosted service's JavaScript SDK does to the arguments for Google and Mistral; Cohere's client wants the same.
const camel = (value, keep = []) =>
  Array.isArray(value) ? value.map((v) => camel(v, keep))
  : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k.replace(/_([a-z])/g, (_, c) => c.toUpperCase()), keep.includes(k) ? v : camel(v, keep)]))
  : value;

const openai = (client, kwargs) =>
  "messages" in kwargs ? client.chat.completions.create(kwargs) : "input" in kwargs ? client.responses.create(kwargs) : client.completions.create(kwargs);
const anthropic = (baseURL, kwargs) => {
  const client = new Anthropic({ apiKey: "key", baseURL, maxRetries: 0 });
  return "messages" in kwargs ? client.messages.create(kwargs) : client.completions.create(kwargs);
};
const google = (baseUrl, kwargs) => {
  if ("messages" in kwargs) return anthropic(baseUrl, kwargs);
  const client = new GoogleGenAI({ apiKey: "key", httpOptions: { baseUrl } });
  const { model, history, contents, generationConfig: config } = camel(kwargs, ["function_declarations", "args", "response"]);
  if (contents) return client.models.generateContent({ model, contents, config });
  return client.chats.create({ model, history: history.slice(0, -1), config }).sendMessage({ message: history.at(-1).parts });
};
const calls = {
  openai: (baseURL, kwargs) => openai(new OpenAI({ apiKey: "key", baseURL, maxRetries: 0 }), kwargs),
  "openai.azure": (baseURL, kwargs) => openai(new AzureOpenAI({ apiKey: "key", baseURL, apiVersion: "v1", maxRetries: 0 }), kwargs),
  anthropic,
  "anthropic.bedrock": anthropic,
  google,
  vertexai: google,
  mistral: (serverURL, kwargs) => new Mistral({ apiKey: "key", serverURL, retryConfig: { strategy: "none" } }).chat.complete(camel(kwargs, ["parameters"])),
  cohere: (baseUrl, kwargs) => new CohereClientV2({ token: "key", baseUrl, maxRetries: 0 }).chat(camel(kwargs, ["parameters"]), { maxRetries: 0 }),
  "amazon.bedrock": (endpoint, kwargs) =>
    new BedrockRuntimeClient({ endpoint, region: "us-east-1", maxAttempts: 1, credentials: { accessKeyId: "a", secretAccessKey: "b" } }).send(new ConverseCommand(kwargs)),
};

const errors = {};
for (const { name, provider, kwargs } of JSON.parse(await text(process.stdin))) {
  try {
    await calls[provider](`${process.argv[2]}/${name}`, kwargs);
  } catch (e) {
    errors[name] = `${e}`.slice(0, 2000);
  }
}
process.stdout.write(JSON.stringify(errors));
