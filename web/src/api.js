// SPDX-License-Identifier: Apache-2.0
// The server that this page came from, and no other.
import { EventSourceParserStream } from "eventsource-parser/stream";

const base = location.origin + location.pathname;  // without a name and password that the address may hold
const kKey = "juno.key";

export const getKey = () => sessionStorage.getItem(kKey) ?? "";
export function setKey(key) {
  if (key) sessionStorage.setItem(kKey, key);
  else sessionStorage.removeItem(kKey);
}

// What the server refused, or what kept a request from reaching it (status 0).
export class ApiError extends Error {
  constructor(status, message, code = null, param = null) {
    super(message);
    Object.assign(this, { status, code, param });
  }
}

function errorOf(status, body) {
  try {
    const { message, code, param } = JSON.parse(body).error;
    return new ApiError(status, message, code, param);
  } catch {
    return new ApiError(status, `The server answered with status ${status}.`);
  }
}

// -> Response with a 2xx status; anything else is thrown as ApiError. An abort stays an AbortError.
export async function ask(path, { body, signal, allow = [] } = {}) {
  const headers = {};
  // Without a key of its own the page leaves the header to the browser, which may know a name and password.
  if (getKey()) headers.Authorization = `Bearer ${getKey()}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, base), {
      method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store",
    });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (response.ok || allow.includes(response.status)) return response;
  throw errorOf(response.status, await response.text());
}

// The chunks of a streamed reply, as objects. A stream that ends without [DONE] has broken off.
export async function* stream(path, body, signal) {
  const response = await ask(path, { body: { ...body, stream: true }, signal });
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await next(reader);
      if (done) throw new ApiError(0, "The reply broke off.");
      if (value.data === "[DONE]") return;
      const chunk = JSON.parse(value.data);
      if (chunk.error) throw errorOf(200, value.data);
      yield chunk;
    }
  } finally {
    reader.cancel().catch(() => {});  // may have failed already, which was told
  }
}

async function next(reader) {
  try {
    return await reader.read();
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ApiError(0, "The connection was lost.");
  }
}
