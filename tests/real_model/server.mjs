// Chat completions on loopback by one local model: `node server.mjs MODEL.gguf THREADS` prints its base URL.
//
// Knows what the agent's "json_schema" protocol needs: messages, response_format, temperature, max_tokens, stream.
// The prompt is the ChatML of Qwen 2.5. Requests are answered one after the other; what a prompt has in common with the
// one before it stays in the context.
import http from "node:http";
import {getLlama, LlamaCompletion} from "node-llama-cpp";

const OPTIONAL = 4; // so many optional properties of an object are made optional in the grammar, with 2^n forms

const [modelPath, threads] = [process.argv[2], Number(process.argv[3])];
const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: threads});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: 4096, threads, batchSize: 512});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});

const mapped = (members, change) => Object.fromEntries(Object.entries(members).map(([name, each]) => [name, change(each)]));

// The grammar's own dialect of JSON Schema: `oneOf` alone, and every property is required.
function readable(schema) {
    if (schema === null || typeof schema !== "object") return schema;
    const {anyOf, properties, required = [], $defs, ...rest} = schema;
    const made = {...rest, ...($defs && {$defs: mapped($defs, readable)})};
    for (const key of ["items", "additionalProperties"]) if (key in made) made[key] = readable(made[key]);
    for (const key of ["oneOf", "prefixItems"]) if (key in made) made[key] = made[key].map(readable);
    if (anyOf) return {...made, oneOf: anyOf.map(readable)};
    if (!properties) return made;
    const all = mapped(properties, readable);
    const optional = Object.keys(all).filter((name) => !required.includes(name)).slice(0, OPTIONAL);
    const forms = Array.from({length: 2 ** optional.length}, (_, absent) => {
        const gone = optional.filter((_, place) => absent & (1 << place));
        return {...made, properties: Object.fromEntries(Object.entries(all).filter(([name]) => !gone.includes(name)))};
    });
    return forms.length === 1 ? forms[0] : {oneOf: forms, ...($defs && {$defs: made.$defs})};
}

function chatml(messages) {
    const spoken = messages.map(({role, content}) => {
        const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
        if (role === "tool") return `<|im_start|>user\n<tool_response>\n${text}\n</tool_response><|im_end|>\n`;
        return `<|im_start|>${role}\n${text}<|im_end|>\n`;
    });
    return `${spoken.join("")}<|im_start|>assistant\n`;
}

async function completed({messages, response_format, temperature = 0, max_tokens = 512}) {
    const schema = response_format?.json_schema?.schema;
    const grammar = schema && await llama.createGrammarForJsonSchema(readable(schema));
    const tokens = model.tokenize(chatml(messages), true);
    const content = await completion.generateCompletion(tokens, {
        grammar, temperature, maxTokens: max_tokens, customStopTriggers: ["<|im_end|>"]
    });
    const sizes = {prompt_tokens: tokens.length, completion_tokens: model.tokenize(content).length};
    return {content, usage: {...sizes, total_tokens: sizes.prompt_tokens + sizes.completion_tokens}};
}

function written(response, {content, usage}, stream) {
    const answer = {id: "chatcmpl-local", created: 0, model: "local"};
    const choice = (rest) => [{index: 0, finish_reason: null, ...rest}];
    if (!stream) {
        response.writeHead(200, {"content-type": "application/json"});
        const choices = choice({message: {role: "assistant", content}, finish_reason: "stop"});
        response.end(JSON.stringify({...answer, object: "chat.completion", choices, usage}));
        return;
    }
    response.writeHead(200, {"content-type": "text/event-stream"});
    const chunks = [
        {choices: choice({delta: {role: "assistant", content}})},
        {choices: choice({delta: {}, finish_reason: "stop"})},
        {choices: [], usage}
    ];
    const lines = chunks.map((chunk) => JSON.stringify({...answer, object: "chat.completion.chunk", ...chunk}));
    response.end([...lines, "[DONE]"].map((line) => `data: ${line}\n\n`).join(""));
}

let last = Promise.resolve();

const server = http.createServer(async (request, response) => {
    try {
        const pieces = [];
        for await (const piece of request) pieces.push(piece);
        const asked = JSON.parse(Buffer.concat(pieces).toString("utf8"));
        const mine = last.then(() => completed(asked));
        last = mine.catch(() => undefined);
        written(response, await mine, asked.stream);
    } catch (error) {
        response.writeHead(500, {"content-type": "application/json"});
        response.end(JSON.stringify({error: {message: String(error)}}));
    }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
process.stdin.on("end", () => process.exit(0)).resume(); // ends with its parent
