// The README's session, by a client whose types are generated from the description of the API.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { env: Record<string, string> };

const { SIDECAR, SERVER, KEY } = process.env;
const headers = { "X-API-KEY": KEY };
const sidecar = createClient<paths>({ baseUrl: SIDECAR, headers });
const server = createClient<paths>({ baseUrl: SERVER, headers });

// done returns what an answer holds, or ends the session with its error.
function done<T>({ data, error }: { data?: T; error?: { message: string } }): T {
  if (data === undefined) throw new Error(error?.message ?? "no answer");
  return data;
}

const template = { params: { path: { template: "generated" } } };

done(await sidecar.POST("/rest/prompt-templates", {
  body: {
    prompt_template: { prompt_name: "generated" },
    prompt_version: {
      prompt_template: {
        type: "chat",
        messages: [{ role: "user", content: [{ type: "text", text: "Say hello to {name}." }] }],
      },
      metadata: { model: { provider: "openai", name: "gpt-4o-mini", parameters: { temperature: 0.2 } } },
    },
    release_labels: ["prod"],
  },
}));

const fetched = done(await sidecar.POST("/prompt-templates/{template}", {
  ...template,
  body: { label: "prod", input_variables: { name: "Ann" } },
}));
const messages = fetched.llm_kwargs?.["messages"];

const { request_id } = done(await sidecar.POST("/rest/track-request", {
  body: {
    function_name: "openai.ChatCompletion.create",
    kwargs: { model: "gpt-4o-mini", messages },
    request_response: {
      model: "gpt-4o-mini-2024-07-18",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hello, Ann!" } }],
      usage: { prompt_tokens: 12, completion_tokens: 4, total_tokens: 16 },
    },
    request_start_time: 1795224000.1,
    request_end_time: 1795224000.85,
    tags: ["demo"],
  },
}));

done(await sidecar.POST("/rest/track-score", { body: { request_id, score: 100 } }));
done(await sidecar.POST("/rest/track-metadata", { body: { request_id, metadata: { user_id: "ann" } } }));
done(await sidecar.POST("/rest/track-prompt", {
  body: { request_id, prompt_name: "generated", prompt_input_variables: { name: "Ann" } },
}));

// A call that is wrong is answered with an error of the described form.
const refused = await sidecar.POST("/rest/track-score", { body: { request_id, score: 101 } });
if (refused.error?.fields[0]?.field !== "score") throw new Error("a score of 101 is taken");

// The sidecar delivers within a moment.
for (;;) {
  const path = { request_id };
  const { data } = await server.GET("/api/public/v2/requests/{request_id}", { params: { path } });
  if (data !== undefined && data.events.length === 4) {
    console.log(JSON.stringify(data));
    break;
  }
}
