// Traces a function with promptlayer 1.0.46 as npm has it, and prints the id of the trace.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { PromptLayer } = require("promptlayer");
const { trace } = require("@opentelemetry/api");

const pl = new PromptLayer({ enableTracing: true });
const outer = pl.wrapWithSpan("outer", async () => trace.getActiveSpan().spanContext().traceId, { k: "v" });
process.stdout.write(await outer());
