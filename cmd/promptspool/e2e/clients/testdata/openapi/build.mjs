// Validates a description of the API, generates the types of a client from it, and compiles session.ts with them.
import { readFileSync, writeFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

// A path without an identifier goes before one with, as OpenAPI has it.
const config = await createConfig({ extends: ["recommended-strict"], rules: { "no-ambiguous-paths": "off" } });
const validate = (source) => lintFromString({ source, config });

const description = readFileSync("openapi.json", "utf8");
const problems = await validate(description);
for (const p of problems) console.log(`${p.ruleId} ${p.location[0]?.pointer}: ${p.message}`);

const damaged = await validate(description.replace('"type": "boolean"', '"type": "bool"'));
if (damaged.length === 0) console.log("the validator finds nothing wrong with a damaged description");

writeFileSync("api.ts", astToString(await openapiTS(description)));
const program = ts.createProgram(["session.ts"], {
  strict: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
  types: [],
  skipLibCheck: true,
});
const wrong = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
console.log(ts.formatDiagnostics(wrong, { getCanonicalFileName: (f) => f, getCurrentDirectory: () => ".", getNewLine: () => "\n" }));

process.exitCode = problems.length + wrong.length > 0 || damaged.length === 0 ? 1 : 0;
