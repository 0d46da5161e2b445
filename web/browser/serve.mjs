// The same pages, served: what lets one in, what is refused, and the comparison.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { chosen } from "./chosen.mjs";

/** Asks as a program would, with exactly these headers. */
function ask(port, path, headers = {}, method = "GET") {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, method, headers: { Host: `127.0.0.1:${port}`, ...headers } }, (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => (body += piece));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, body }));
    });
    asked.on("error", reject);
    asked.end();
  });
}

export async function serve({ browser, program, runs, check, looks, ready, settled, sound }) {
  const server = spawn(program, ["--runs", runs, "serve"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SSH_CONNECTION: "192.0.2.7 50000 192.0.2.1 2222", USER: "ann", SUDO_USER: "" },
  });
  try {
    let talk = "";
    server.stderr.on("data", (piece) => (talk += piece));
    const address = await new Promise((resolve, reject) => {
      let text = "";
      server.stdout.on("data", (piece) => {
        text += piece;
        if (text.includes("\n")) resolve(text.trim());
      });
      server.on("exit", (code) => reject(new Error(`serve ended with ${code}: ${talk}`)));
    });
    const url = new URL(address);
    const port = Number(url.port);

    await check("serve: refuses whoever has not the secret, another host or another origin", async () => {
      assert.equal(url.hostname, "127.0.0.1");
      const home = url.pathname;
      assert.match(home, /^\/[0-9a-f]{32}\/$/);
      for (const path of ["/", "/run/x", `/?token=${home.slice(1, -1)}`, `/${"0".repeat(32)}/`]) assert.equal((await ask(port, path)).status, 403, path);
      const list = await ask(port, home);
      assert.equal(list.status, 200);
      assert.equal(list.headers["set-cookie"], undefined);
      assert.equal(list.headers["referrer-policy"], "no-referrer");
      assert.equal((await ask(port, home, { Host: "evil.example" })).status, 403);
      assert.equal((await ask(port, home, { Origin: "http://evil.example" })).status, 403);
      assert.equal((await ask(port, home, { "Sec-Fetch-Site": "cross-site" })).status, 403);
      assert.equal((await ask(port, home, {}, "POST")).status, 405);
      assert.equal((await ask(port, `${home}run/..%2f..%2fetc`)).status, 404);
      assert.equal((await ask(port, `${home}etc/passwd`)).status, 404);
      const head = await ask(port, home, {}, "HEAD");
      assert.deepEqual([head.status, head.body], [200, ""]);
      assert.match(talk, /ssh -p 2222 -N -L \d+:127\.0\.0\.1:\d+ ann@192\.0\.2\.1/);
    });

    await check("serve: the list is searched, a run is opened, pages have no secret, two runs are compared", async () => {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      const said = [];
      const outside = [];
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) said.push(message.text());
      });
      page.on("pageerror", (error) => said.push(error.message));
      page.on("request", (request) => {
        if (new URL(request.url()).host !== url.host && !/^(data|blob):/.test(request.url())) outside.push(request.url());
      });
      await page.goto(address);
      await looks(page, "serve-list");
      // Whatever a label is, it is text.
      const labels = await page.locator("tbody a").allTextContents();
      for (const label of ["<script>document.title='got in'</script>", "\"><img src=x onerror=alert(1)>'"]) assert.ok(labels.includes(label), label);
      assert.ok(labels.some((label) => label.startsWith("\\u{202e}") || label.startsWith("\\u202e")), labels.join("\n"));
      assert.ok(labels.every((label) => label.length <= 80), "a label is longer than a line");
      assert.equal(await page.locator("script, img").count(), 0);
      assert.notEqual(await page.title(), "got in");
      const rows = () => page.locator("tbody tr").count();
      const all = await rows();
      assert.ok(all > 3, `${all} runs`);
      await page.locator("input[name=q]").fill("generated-10");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      assert.ok((await page.locator("tbody a").allTextContents()).every((label) => label.startsWith("generated-10")));
      assert.ok((await rows()) < all);
      await page.getByLabel("generated-10 as a", { exact: true }).check();
      await page.getByLabel("generated-100000 as b", { exact: true }).check();
      await page.locator("button", { hasText: "Compare" }).click();
      assert.match(page.url(), /\/compare\?/);
      assert.match(await page.locator("h1").textContent(), /^generated-\d+ beside generated-\d+$/);
      assert.match(await page.locator("main").textContent(), /Figures: less is better/);
      assert.ok((await page.locator("svg.chart").count()) >= 4);
      await sound(page);
      await looks(page, "serve-compare");
      // The same run twice is an error page with a way back.
      const id = new URL(page.url()).searchParams.get("a");
      const told = await page.goto(`${address}compare?a=${id}&b=${id}`);
      assert.equal(told.status(), 400);
      said.splice(0);
      await looks(page, "serve-refusal");
      await page.locator("main a").click();
      assert.equal(await rows(), all);
      await page.goto(`${address}?q=generated-10`);
      await page.locator("tbody a", { hasText: /^generated-10$/ }).click();
      await ready(page);
      assert.ok(!(await page.content()).includes(url.pathname.slice(1, -1)));
      await page.locator("#worst tbody a").first().click();
      await page.waitForFunction(() => location.hash.includes("stall="));
      await page.locator(".brand a").click();
      assert.equal(await rows(), all);
      assert.deepEqual(said, []);
      assert.deepEqual(outside, []);
      await page.close();
    });

    await chosen({ browser, check, settled, address });

    await check("serve: what a page has not is asked for: one stall's parts and frames", async () => {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      const said = [];
      page.on("pageerror", (error) => said.push(error.message));
      await page.goto(address);
      const { id } = JSON.parse(readFileSync(join(runs, "fixture-spin", "manifest.json"), "utf8"));
      await page.goto(`${address}run/${id}`);
      await ready(page);
      // The page's policy lets its script ask here.
      const first = await page.locator("#worst tbody a").first().getAttribute("href");
      const stall = Number(first.replace("#stall=", ""));
      const told = await page.evaluate(async (n) => (await fetch(`${location.pathname}/stall/${n}`)).json(), stall);
      assert.equal(told.stall, stall);
      assert.ok(told.frames.length > 1 && told.parts.length > 0, JSON.stringify(told));
      // By what the page knows whose a frame is.
      assert.ok(told.frames.some((frame) => Number.isSafeInteger(frame.key)), JSON.stringify(told.frames[0]));
      const sum = told.parts.reduce((total, part) => total + part.net_ns, 0);
      assert.ok(Math.abs(sum - told.length_ns) <= 1 + told.parts.length, `${sum} of ${told.length_ns}`);
      const elsewhere = await page.evaluate(async () => {
        try {
          return (await fetch("http://127.0.0.1:9/")).status;
        } catch {
          return "blocked";
        }
      });
      assert.equal(elsewhere, "blocked");
      // A stall that the run does not have.
      await page.evaluate(() => (location.hash = "#stall=99999999"));
      await page.waitForFunction(() => document.querySelector(".panel")?.textContent?.includes("not available"));
      // One of a run without a trace.
      await page.goto(`${address}?q=generated-100000`);
      await page.locator("tbody a", { hasText: /^generated-100000$/ }).click();
      await ready(page);
      await page.locator("#timeline .canvas canvas").focus();
      await page.keyboard.press("n");
      await page.waitForFunction(() => /Its trace was not kept: the order of the turns above is lost/.test(document.querySelector(".panel")?.textContent ?? ""));
      assert.deepEqual(said, []);
      await page.close();
    });

    await check("serve: a page of another site may lead here, and cannot look", async () => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(address);
      await page.goto("data:text/html,<p>elsewhere</p>");
      const seen = await page.evaluate(async (at) => {
        try {
          return (await fetch(at, { credentials: "include" })).status;
        } catch {
          return "blocked";
        }
      }, address);
      assert.equal(seen, "blocked");
      // As the file does with which --open starts a browser.
      await page.goto(`data:text/html,<meta http-equiv="refresh" content="0; url=${address}">`);
      await page.waitForURL(address);
      assert.equal(await page.locator("h1").textContent(), "Runs");
      await context.close();
    });
  } finally {
    server.kill("SIGTERM");
  }
}
