// Exports a trace with OpenTelemetry's SDK in protobuf, in JSON and over gRPC. The exporters have no settings but the environment's.
// Writes {form: {trace, spans: {name: id}}} of what was exported, as one JSON object.
import { context, diag, DiagLogLevel, SpanStatusCode, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as GRPCExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as JSONExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

diag.setLogger({ error: console.error, warn: console.error, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);

const chat = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "openai",
  "gen_ai.request.model": "gpt-4o",
  "gen_ai.response.model": "gpt-4o-answered",
  "gen_ai.request.temperature": 0.5,
  "gen_ai.request.stream": false,
  "gen_ai.request.stop_sequences": ["END", "é\u2028"],
  "gen_ai.usage.input_tokens": 3,
  "gen_ai.usage.output_tokens": 4,
  "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "hello" }] }]),
  "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts: [{ type: "text", content: "hey" }], finish_reason: "stop" }]),
};

const run = async (exporter, steps) => {
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 4096 })] });
  const tracer = provider.getTracer("app", "1.2.3");
  const spans = {};
  const add = (name, parent, attributes) => {
    const within = parent ? trace.setSpan(context.active(), parent) : context.active();
    const span = tracer.startSpan(name, { attributes }, within);
    spans[name] = span.spanContext().spanId;
    return span;
  };

  const agent = add("agent");
  add("chat gpt-4o", agent, chat).addEvent("first token", { n: 1 }).setStatus({ code: SpanStatusCode.OK }).end();
  const tool = add("execute_tool", agent, { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look" });
  tool.recordException(new Error("no such file"));
  tool.setStatus({ code: SpanStatusCode.ERROR, message: "no such file" }).end();
  for (let i = 0; i < steps; i++) add(`step ${i}`, agent).end();
  agent.end();

  await provider.forceFlush();
  await provider.shutdown();
  return { trace: agent.spanContext().traceId, spans };
};

process.stdout.write(
  JSON.stringify({
    // More than one batch of 512.
    protobuf: await run(new ProtobufExporter(), 600),
    json: await run(new JSONExporter(), 20),
    // The proxy between is of HTTP/1.1.
    grpc: await run(new GRPCExporter({ url: process.env.GRPC_ENDPOINT }), 600),
  }),
);
