// SPDX-License-Identifier: Apache-2.0
// node_openai.mjs PACKAGE URL KEY MODEL
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [file, baseURL, apiKey, model] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(file));
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "Say something about rivers." }];
const city = { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false };

const tests = {
  async chat() {
    const fields = { model, messages, max_tokens: 16, temperature: 0 };
    const plain = await client.chat.completions.create(fields);
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...fields, stream: true })) text += chunk.choices[0].delta.content ?? "";
    assert.equal(text, plain.choices[0].message.content);
    assert.ok(plain.usage.completion_tokens <= 16);
  },
  async tools() {
    const tools = [{ type: "function", function: { name: "weather", parameters: city } }];
    const reply = await client.chat.completions.create({
      model, messages, tools, tool_choice: "required", parallel_tool_calls: false, max_tokens: 100, temperature: 0 });
    const call = reply.choices[0].message.tool_calls[0];
    assert.equal(call.function.name, "weather");
    assert.equal(typeof JSON.parse(call.function.arguments).city, "string");
  },
  async structuredOutput() {
    const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"], additionalProperties: false };
    const reply = await client.chat.completions.create({
      model, messages, max_tokens: 80, temperature: 0, response_format: { type: "json_schema", json_schema: { name: "x", schema } } });
    if (reply.choices[0].finish_reason === "stop") assert.equal(typeof JSON.parse(reply.choices[0].message.content).a, "boolean");
  },
  async embeddings() {
    const packed = await client.embeddings.create({ model, input: ["a", "b"] });
    const floats = await client.embeddings.create({ model, input: ["a", "b"], encoding_format: "float" });
    assert.deepEqual(packed.data.map((d) => d.embedding), floats.data.map((d) => d.embedding.map(Math.fround)));
  },
  async responses() {
    const fields = { model, input: "Say something about rivers.", max_output_tokens: 12, temperature: 0 };
    const plain = await client.responses.create(fields);
    let text = "", last;
    for await (const event of await client.responses.create({ ...fields, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event;
    }
    assert.equal(text, plain.output_text);
    assert.match(last.type, /^response\.(completed|incomplete)$/);
    const next = await client.responses.create({ model, input: "Go on.", previous_response_id: plain.id, max_output_tokens: 4 });
    assert.equal(next.previous_response_id, plain.id);
  },
  async errors() {
    const wrong = new OpenAI({ baseURL, apiKey: "sk-wrong", maxRetries: 0 });
    await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
    await assert.rejects(client.chat.completions.create({ model: "none", messages }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.create({ model, messages, temperature: 3 }), (e) => e.param === "temperature" && e.status === 400);
  },
  async cancel() {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 900, ignore_eos: true, stream: true });
    for await (const chunk of stream) { assert.ok(chunk.id); break; }
    const controller = new AbortController();
    const plain = client.chat.completions.create({ model, messages, max_tokens: 900, ignore_eos: true }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 100);
    await assert.rejects(plain, OpenAI.APIUserAbortError);
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
