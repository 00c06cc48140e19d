// Calls the cases with the TypeScript SDK, 1 or 2; `MODE TARGET...`, streams as in `client_python.py`.
import { readFileSync } from "node:fs";

const [mode, ...target] = process.argv.slice(2);
const cases = JSON.parse(readFileSync(0, "utf8"));
const info = { name: "matrix", version: "1" };
const options = { capabilities: { elicitation: { form: {} } } };
const said = { string: "Ada", integer: 2, boolean: false };
const answer = (request) => {
  const members = Object.entries(request.params.requestedSchema.properties ?? {});
  const filled = members.map(([name, member]) => [name, member.enum ? member.enum[0] : said[member.type]]);
  return { action: "accept", content: Object.fromEntries(filled) };
};

let client, Stdio, Http;
if (mode === "v1") {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  Stdio = (await import("@modelcontextprotocol/sdk/client/stdio.js")).StdioClientTransport;
  Http = (await import("@modelcontextprotocol/sdk/client/streamableHttp.js")).StreamableHTTPClientTransport;
  client = new Client(info, options);
  client.setRequestHandler(ElicitRequestSchema, async (request) => answer(request));
} else {
  const sdk = await import("@modelcontextprotocol/client");
  Stdio = (await import("@modelcontextprotocol/client/stdio")).StdioClientTransport;
  Http = sdk.StreamableHTTPClientTransport;
  client = new sdk.Client(info, { ...options, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", async (request) => answer(request));
}

const http = target[0].startsWith("http");
await client.connect(http ? new Http(new URL(target[0])) : new Stdio({ command: target[0], args: target.slice(1) }));
const { tools } = await client.listTools();
const results = {};
for (const [name, args] of Object.entries(cases)) {
  try {
    const { $method: method, ...parameters } = args;
    if (method === "resources/read") results[name] = await client.readResource(parameters);
    else if (method === "prompts/get") results[name] = await client.getPrompt(parameters);
    else results[name] = await client.callTool({ name, arguments: args });
  } catch (error) {
    results[name] = { raised: `${error.name}: ${error.message}` };
  }
}
await client.close();
process.stdout.write(`${JSON.stringify({ tools, results })}\n`);
