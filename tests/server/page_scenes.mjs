// SPDX-License-Identifier: Apache-2.0
// What a person does with the page:  page_scenes.mjs NAME URL
// In every scene nothing is asked of another host, the policy is never broken and no script fails.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const modules = createRequire(`${process.env.PAGE_MODULES}/`);
const { chromium } = modules("playwright-core");

const [name, url] = process.argv.slice(2);
const kFlags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: kFlags });
const faults = [];

async function open(options = {}, before = async () => {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`asked elsewhere: ${request.url()}`);
  });
  await page.exposeFunction("policyBroken", (what) => faults.push(`policy: ${what}`));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) => window.policyBroken(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  await before(page);
  await page.goto(url);
  return page;
}

const ready = (page) => page.waitForFunction(() => document.querySelector("#model").value !== "");
const finished = (page, n = 1) => page.waitForFunction((wanted) => document.querySelectorAll(".reply .foot button").length > 0
  && document.querySelectorAll(".reply:not([aria-busy])").length >= wanted, n);
async function say(page, text) {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
}

const event = (delta, reason = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }], usage: null })}\n\n`;
const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } })}\n\n`;

// Replies of a model that says just this; what was asked is put into `asked`.
const script = (...replies) => async (page) => {
  page.asked = [];
  await page.route("**/v1/chat/completions", (route) => {
    page.asked.push(route.request().postDataJSON());
    const reply = replies.shift();
    return route.fulfill(typeof reply === "string" ? { contentType: "text/event-stream", body: reply } : reply);
  });
};
const text = (...pieces) => ": keep-alive\n\n" + pieces.map((content) => event({ content })).join("") + event({}, "stop") + usage + "data: [DONE]\n\n";

const scenes = {
  async streams_and_stops() {
    const page = await open();
    await ready(page);
    await say(page, "Tell me a long story about the sea.");
    const reply = page.locator(".reply .text").first();
    const lengths = new Set();
    while (lengths.size < 4) lengths.add(((await reply.textContent({ timeout: 60000 })) ?? "").length);
    await finished(page);
    assert.match(await page.locator(".foot").first().textContent(), /\d+ tokens/);

    await page.evaluate(() => document.querySelector("#fresh").click());
    await page.fill("#set-max_completion_tokens", "900");
    await page.route("**/v1/chat/completions", (route) =>
      route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), ignore_eos: true }) }));
    await say(page, "Tell me another one.");
    await page.waitForFunction(() => (document.querySelector(".reply .text")?.textContent.length ?? 0) > 20);
    await page.click("#stop");
    await finished(page);
    assert.match(await page.locator(".foot").textContent(), /stopped/);
    const said = await reply.textContent();
    assert(await page.locator("#send").isVisible());
    // The server has let go as well.
    for (let tries = 0; ; tries++) {
      const { models } = await (await fetch(`${url}/health`)).json();
      if (models.every(({ running, waiting }) => running === 0 && waiting === 0)) break;
      assert(tries < 1200, "the request still runs");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.match(await (await fetch(`${url}/metrics`)).text(), /^juno_requests_total\{[^}]*outcome="cancelled"[^}]*\} 1$/m);
    assert.equal(await reply.textContent(), said);
  },

  async markup_is_cleaned() {
    const attack = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><p style="color:red">x</p> <svg onload="window.hacked=3"></svg>\n\n'
      + "![pixel](https://elsewhere.example/?leak) [js](javascript:window.hacked=4) [data](data:text/html,x) [ok](https://example.com/)\n\n"
      + '[q](https://example.com/"onmouseover="window.hacked=5)\n\n<iframe srcdoc="x"></iframe>\n\n<a href="x" id="message" name="body">clobber</a>\n\n'
      + "```js\nlet a = '<b>';\n```\n\n| a | b |\n|--|--:|\n| 1 | **2** |\n\n# Head\n\n- [x] done\n- one\n  1. two\n";
    const page = await open({}, script(text(...attack.match(/[^]{1,5}/g))));
    await ready(page);
    await say(page, "x");
    await finished(page);
    const log = page.locator("#log");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await log.locator("img, script, svg, iframe, style, [style], [onerror], [onload], [onmouseover], [id=message], form, input").count(), 0);
    const links = await log.locator("a[href]").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.rel, a.target]));
    assert(links.length >= 2);
    for (const [href, rel, target] of links) {
      assert.match(href, /^https:\/\//);
      assert.deepEqual([rel, target], ["noopener noreferrer nofollow", "_blank"]);
    }
    assert.match(await log.textContent(), /<img src=x onerror=/);
    for (const tag of ["table", "h1", "ul ol", "td strong", ".code pre code"]) assert.equal(await log.locator(`.text ${tag}`).count(), 1, tag);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await log.locator(".code button").click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "let a = '<b>';\n");
  },

  async reasoning_and_calls() {
    const call = event({ role: "assistant", content: null }) + event({ reasoning_content: "I need " }) + event({ reasoning_content: "the weather." })
      + event({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }] })
      + event({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }) + event({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] })
      + event({}, "tool_calls") + "data: [DONE]\n\n";
    const page = await open({}, script(call, text("It rains.")));
    await ready(page);
    await say(page, "The weather?");
    await finished(page);
    const reasoning = page.locator(".reasoning");
    assert.equal(await reasoning.evaluate((node) => node.open), false);
    await reasoning.locator("summary").press("Enter");
    assert(await reasoning.getByText("I need the weather.").isVisible());
    assert.match(await page.locator(".call summary").textContent(), /weather/);
    assert.equal(await page.locator(".call pre").textContent(), '{"city":"Oslo"}');
    await page.getByLabel("Result of weather").fill("rain");
    await page.getByRole("button", { name: "Send results" }).click();
    await finished(page, 2);
    assert.equal(await page.locator(".reply .text").nth(1).innerText(), "It rains.");
    const calls = [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }];
    assert.deepEqual(page.asked[1].messages, [{ role: "user", content: "The weather?" },
      { role: "assistant", content: null, reasoning_content: "I need the weather.", tool_calls: calls },
      { role: "tool", tool_call_id: "call_1", content: "rain" }]);
  },

  async errors_are_told() {
    const refusal = { status: 400, contentType: "application/json",
      body: JSON.stringify({ error: { message: "Too long: 2000 of 1024 tokens.", type: "invalid_request_error", param: "messages", code: "context_length_exceeded" } }) };
    const broken = event({ content: "Half an ans" }) + `data: ${JSON.stringify({ error: { message: "The device is gone.", type: "server_error", param: null, code: "internal_error" } })}\n\n`;
    const page = await open({}, script(refusal, broken, event({ content: "Cut" }), text("Well.")));
    await ready(page);
    const alert = page.locator("#log [role=alert]");
    await say(page, "one");
    assert.match(await alert.textContent(), /Too long: 2000 of 1024 tokens/);
    assert.equal(await page.inputValue("#message"), "one");  // taken back, to be changed
    assert.equal(await page.locator(".turn").count(), 0);
    await page.press("#message", "Enter");
    await page.getByText("The device is gone.").waitFor();
    assert.equal(await page.locator(".reply .text").innerText(), "Half an ans");
    await say(page, "three");
    await page.getByText("The reply broke off.").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Well.").first().waitFor();
    assert.equal(await alert.count(), 0);
    assert.deepEqual(page.asked[3].messages.map(({ content }) => content), ["one", "Half an ans", "three"]);
  },

  async keyboard() {
    const page = await open({}, script(text("First."), text("Second.")));
    await ready(page);
    assert.equal(await page.evaluate(() => document.activeElement.id), "message");
    await page.keyboard.type("a");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("b");
    await page.keyboard.press("Enter");
    await finished(page);
    assert.equal(page.asked[0].messages[0].content, "a\nb");
    // From the top, by Tab alone, everything is reached in the order it is seen, and is named and outlined.
    await page.evaluate(() => {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    });
    const reached = [];
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const node = document.activeElement;
        if (node === document.body) return null;
        const name = node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent;
        return { name: name.trim(), outline: getComputedStyle(node).outlineStyle };
      });
      if (!at || at.name === reached[0]?.name) break;
      assert(at.name, "something without a name is reached");
      assert.notEqual(at.outline, "none", at.name);
      reached.push(at);
    }
    const names = reached.map((r) => r.name);
    const order = ["Go to the message field", "Chat", "Dashboard", "Messages", "Copy", "Try again", "Message", "Send", "New conversation", "Settings",
      "Close", "Model", "System prompt", "Temperature", "API key"];
    assert.deepEqual(names.filter((n) => order.includes(n)), order, names.join(", "));
    // Esc closes the settings and gives the focus back.
    await page.focus("#key");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.id), "toggle");
    assert(!(await page.locator("#settings").isVisible()));
    await page.keyboard.press("Enter");
    assert(await page.locator("#settings").isVisible());
    // Esc stops an answer.
    await page.unroute("**/v1/chat/completions");
    await page.route("**/v1/chat/completions", () => {});  // never answers
    await page.focus("#message");
    await page.keyboard.type("wait");
    await page.keyboard.press("Enter");
    await page.locator("#stop").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#send").waitFor();
    assert.equal(await page.inputValue("#message"), "wait");
    // A screen reader was told.
    assert.equal(await page.locator("#spoken").textContent(), "Stopped");
  },

  async settings_are_sent() {
    const page = await open({}, script(text("x"), text("y")));
    await ready(page);
    await say(page, "plain");
    await finished(page);
    assert.deepEqual(Object.keys(page.asked[0]).sort(), ["messages", "model", "stream", "stream_options"]);
    await page.fill("#system", "Be brief.");
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
    const values = { temperature: "0.5", top_p: "0.9", top_k: "40", min_p: "0.05", repetition_penalty: "1.1", presence_penalty: "-0.5", frequency_penalty: "0.25",
      max_completion_tokens: "64", seed: "7", stop: "END\nSTOP", tools: JSON.stringify(tools) };
    for (const [field, value] of Object.entries(values)) await page.fill(`#set-${field}`, value);
    await page.selectOption("#set-reasoning_effort", "low");
    await say(page, "all");
    await finished(page, 2);
    const { messages, model, stream, stream_options, ...sent } = page.asked[1];
    assert.deepEqual(sent, { temperature: 0.5, top_p: 0.9, top_k: 40, min_p: 0.05, repetition_penalty: 1.1, presence_penalty: -0.5, frequency_penalty: 0.25,
      max_completion_tokens: 64, seed: 7, stop: ["END", "STOP"], tools, reasoning_effort: "low" });
    assert.deepEqual(messages[0], { role: "system", content: "Be brief." });
    // What cannot be read is told by name, and nothing is sent.
    await page.fill("#set-tools", "[1,");
    await say(page, "bad");
    assert.match(await page.locator("#log [role=alert]").textContent(), /^Tools/);
    assert.equal(page.asked.length, 2);
    // Nothing of it outlives the page.
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
  },

  async dashboard() {
    const page = await open();
    await ready(page);
    await page.click("nav a[href='#dashboard']");
    const tile = (label) => page.locator("#tiles div").filter({ hasText: label }).locator("dd");
    await page.waitForFunction(() => document.querySelectorAll("#plots canvas").length >= 7);
    assert.equal(await tile("Health").textContent(), "ok");
    // Nothing is told of a model that is not loaded yet. Work for the figures; then they move.
    assert.equal(await tile("Answered").textContent(), "–");
    const { data: [{ id }] } = await (await fetch(`${url}/v1/models`)).json();
    for (let i = 0; i < 3; i++) {
      const reply = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: id, messages: [{ role: "user", content: "Count." }], max_completion_tokens: 40, stream: true }) });
      await reply.text();
    }
    await page.waitForFunction(() => [...document.querySelectorAll("#tiles div")].some((d) => d.textContent.startsWith("Answered") && Number(d.lastChild.textContent) >= 3));
    for (const label of ["First token, median", "Between tokens, median"])
      assert.match(await tile(label).textContent(), /^\d.* m?s$/, label);
    assert.match(await tile("Memory of the program").textContent(), /^\d.* [MG]B$/);
    // Lines, not only axes, which are grey.
    const drawn = () => page.evaluate(() => [...document.querySelectorAll("#plots figure")].filter((figure) => {
      const canvas = figure.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let coloured = 0;
      for (let i = 0; i < data.length; i += 4) coloured += data[i + 3] > 200 && Math.max(...data.slice(i, i + 3)) - Math.min(...data.slice(i, i + 3)) > 50;
      return coloured > 20;
    }).map((figure) => figure.querySelector("figcaption").textContent));
    const empty = async (titles) => {
      const plots = await drawn();
      return titles.filter((title) => !plots.includes(title));
    };
    const titles = ["Tokens a second", "Requests", "Time to the first token", "Time between tokens", "Pages of keys and values", "Memory"];
    for (let i = 0; i < 60 && (await empty(titles)).length; i++) await page.waitForTimeout(1000);
    assert.deepEqual(await empty(titles), []);
    assert.match(await page.locator("#plots [role=img]").first().getAttribute("aria-label"), /Tokens a second: written \d/);
    // Dark is drawn anew in its own colours.
    await page.emulateMedia({ colorScheme: "dark" });
    for (let i = 0; i < 60 && (await empty(["Memory"])).length; i++) await page.waitForTimeout(200);
    assert.deepEqual(await empty(["Memory"]), []);
    // The server goes: the page says so.
    await page.route("**/health", (route) => route.abort());
    await page.getByText("not reached").first().waitFor();
    assert(await page.locator("#trouble").isVisible());
  },

  async a_breach_is_seen() {
    // Every scene asserts that there was no breach; here is one, so that the assertion is known to see it.
    const page = await open();
    await ready(page);
    await page.evaluate(() => {
      const node = document.createElement("img");
      node.src = "http://127.0.0.1:1/pixel";
      document.body.append(node);
    });
    await page.evaluate(() => {
      const node = document.createElement("div");
      try {
        node.innerHTML = "<b>x</b>";
      } catch {}
      document.body.append(node);
    });
    for (let i = 0; i < 1200 && faults.length < 3; i++) await page.waitForTimeout(50);
    assert(faults.some((f) => f.startsWith("asked elsewhere")), faults.join("; "));
    assert(faults.some((f) => f.startsWith("policy: img-src")), faults.join("; "));
    assert(faults.some((f) => f.startsWith("policy: require-trusted-types-for")), faults.join("; "));
    faults.length = 0;
  },

  async phone() {
    const long = `${"word".repeat(60)} \`${"code".repeat(60)}\`\n\n\`\`\`\n${"x".repeat(300)}\n\`\`\`\n\n|${" a |".repeat(20)}\n|${"--|".repeat(20)}\n|${" long cell |".repeat(20)}\n`;
    const page = await open({ viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true }, script(text(long)));
    await ready(page);
    assert(!(await page.locator("#settings").isVisible()));
    await page.fill("#message", "hello");
    await page.tap("#send");
    await finished(page);
    const fits = async (what) => assert(await page.evaluate(() => document.documentElement.scrollWidth <= 320 && document.querySelector("#log").scrollWidth <= 320), what);
    await fits("the chat");
    await page.tap("#toggle");
    await fits("the settings");
    await page.getByRole("button", { name: "Close" }).tap();
    assert(!(await page.locator("#settings").isVisible()));
    await page.tap("nav a[href='#dashboard']");
    await page.waitForFunction(() => document.querySelectorAll("#plots canvas").length >= 7);
    await fits("the dashboard");
  },

  async accessible() {
    const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
    const reply = event({ reasoning_content: "Hm." }) + text("# Head\n\nSome `code` and a [link](https://example.com/).\n\n```js\nx\n```\n\n|a|\n|-|\n|1|\n");
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ colorScheme }, script(reply, { status: 400, contentType: "application/json", body: '{"error":{"message":"No.","code":"x"}}' }));
      await ready(page);
      await say(page, "x");
      await finished(page);
      await say(page, "y");
      await page.locator("#log [role=alert]").waitFor();
      for (const view of ["chat", "dashboard"]) {
        await page.click(`nav a[href='#${view}']`);
        if (view === "dashboard") await page.waitForFunction(() => document.querySelectorAll("#plots canvas").length >= 7);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        assert.deepEqual(violations.map((v) => `${colorScheme} ${view} ${v.id}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`), []);
      }
    }
  },

  async key() {
    const key = process.env.PAGE_KEY;
    const shut = await fetch(url, { headers: { accept: "text/html" } });
    assert.equal(shut.status, 401);
    assert.match(shut.headers.get("www-authenticate"), /Basic/);
    for (const path of ["page/app.js", "metrics", "v1/models"]) assert.equal((await fetch(`${url}/${path}`)).status, 401, path);
    // The browser's own question for a name and password opens all of it.
    const page = await open({ httpCredentials: { username: "me", password: key } });
    await ready(page);
    await page.fill("#set-max_completion_tokens", "5");
    await say(page, "Hello");
    await finished(page);
    // A wrong key in the field is refused and asked for again; it lasts as long as the tab.
    await page.fill("#key", "wrong");
    await page.press("#key", "Tab");
    await page.waitForFunction(() => document.activeElement.id === "key");
    await page.fill("#key", key);
    const asked = page.waitForRequest((request) => request.url().endsWith("/v1/models"));
    await page.press("#key", "Tab");
    assert.equal((await asked).headers().authorization, `Bearer ${key}`);
    assert.deepEqual(await page.evaluate(() => [sessionStorage.getItem("juno.key"), localStorage.length]), [key, 0]);
  },
};

try {
  await scenes[name]();
  assert.deepEqual(faults, []);
} catch (error) {
  console.error(error.stack, faults.join("\n"));
  process.exitCode = 1;
}
await browser.close();
