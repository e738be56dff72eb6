// SPDX-License-Identifier: MIT
//
// What the browser tests share: hosts that misbehave when told to and count what they get, a real gateway in front of them,
// callers, and a real browser that looks at it. Everything is on loopback and ends with the test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits, generously, until `claim` holds; says what was missing if it never does. */
export async function until(what, claim, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  let last;
  while (Date.now() < end) {
    last = await claim();
    if (last) return last;
    await sleep(100);
  }
  assert.fail(`${what}: not within ${seconds} s`);
}

/** A host: `reply(request)` gives {status, delay, body, headers}; `seen` is how many requests it got. */
export class Host {
  static async open(reply = () => ({})) {
    const host = new Host();
    host.reply = reply;
    host.seen = 0;
    host.server = http.createServer((request, response) => host.answer(request, response));
    await new Promise((done) => host.server.listen(0, "127.0.0.1", done));
    host.address = `127.0.0.1:${host.server.address().port}`;
    return host;
  }

  async answer(request, response) {
    this.seen += 1;
    request.resume();
    const { status = 200, delay = 0, body = "fine", headers = {} } = this.reply(request);
    if (delay > 0) await sleep(delay);
    response.writeHead(status, headers).end(body);
  }

  close() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }
}

/** A gateway of its own process. `policy({listen, admin})` writes its file. */
export class Gateway {
  static async open(policy) {
    const gateway = new Gateway();
    gateway.folder = fs.mkdtempSync(path.join(os.tmpdir(), "becalm-browser-"));
    gateway.file = path.join(gateway.folder, "becalm.yaml");
    fs.writeFileSync(gateway.file, policy);
    for (let i = 0; i < 5; i++) if (await gateway.start()) return gateway;
    throw new Error(`can't start: ${gateway.log}`);
  }

  async start() {
    const port = () => 10000 + Math.floor(Math.random() * 22000); // below the range of outgoing connections
    const [listen, admin] = [port(), port()];
    this.log = "";
    const program = process.env.BECALM ?? path.resolve(import.meta.dirname ?? ".", "../../build/dev/becalm");
    this.process = spawn(program, ["proxy", "--set", `listen=127.0.0.1:${listen}`, "--set", `admin=127.0.0.1:${admin}`, "--set", "drain.delay=0s", path.basename(this.file)], { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
    this.process.stderr.on("data", (data) => (this.log += data));
    this.ended = new Promise((done) => this.process.on("exit", (code) => done(code)));
    this.listen = listen;
    this.admin = `http://127.0.0.1:${admin}`;
    for (let i = 0; i < 300 && this.process.exitCode === null; i++) {
      if (await fetch(`${this.admin}/readyz`).then((answer) => answer.ok, () => false)) return true;
      await sleep(50);
    }
    return false;
  }

  async state(service = "") {
    const answer = await fetch(`${this.admin}/api/state${service && `?service=${service}`}`, { headers: this.headers });
    return answer.json();
  }

  /** One endpoint's numbers. */
  async target(service, endpoint = "default") {
    return (await this.state(service)).services[0].endpoints.find((each) => each.name === endpoint);
  }

  call(where, options = {}) {
    return new Promise((done, failed) => {
      const request = http.request({ host: "127.0.0.1", port: this.listen, path: where, agent: this.agent, ...options }, (response) => {
        response.resume();
        response.on("end", () => done(response.statusCode));
      });
      request.on("error", failed);
      request.end();
    });
  }

  /** Calls at a steady pace until the returned function is called. */
  traffic(where, everyMs) {
    this.agent ??= new http.Agent({ keepAlive: true });
    let ends = false;
    const all = new Set();
    const timer = setInterval(() => {
      const call = this.call(where).catch(() => {});
      all.add(call);
      call.then(() => all.delete(call));
    }, everyMs);
    return async () => {
      if (!ends) clearInterval(timer);
      ends = true;
      await Promise.all(all);
    };
  }

  /** It must end with 0 and without a sanitizer's report. */
  async close() {
    this.agent?.destroy();
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), 40000);
    const code = await this.ended;
    clearTimeout(late);
    fs.rmSync(this.folder, { recursive: true, force: true });
    assert.doesNotMatch(this.log, /Sanitizer|runtime error:|assertion/);
    assert.equal(code, 0, this.log);
  }
}

/** The system's chromium, with a profile that is forgotten. */
export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** A page that fails the test on any script error, on any request that leaves the gateway, on any breach of the CSP. */
export async function openPage(browser, { width = 1400, height = 900, dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (problem) => page.problems.push(`error: ${problem.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url())) page.problems.push(`leaves: ${request.url()}`);
  });
  return page;
}

/** axe-core finds nothing. Scripts of the test are not the page's, so they are given to the browser and not to the page. */
export async function accessible(page, what) {
  const source = fs.readFileSync(AXE, "utf8");
  const found = await page.evaluate(`${source}; axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`);
  const said = found.map((each) => `${each.id}: ${each.help}\n  ${each.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n  ")}`);
  assert.equal(found.length, 0, `${what}: ${said.join("\n")}`);
}

/** Nothing sticks out to the right. */
export async function fits(page, what) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${what}: ${wide} px too wide`);
}

/** Pictures are for people; where they go is said by BECALM_PICTURES. */
export async function picture(page, name, options = { fullPage: true }) {
  const folder = process.env.BECALM_PICTURES;
  if (!folder) return;
  fs.mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), ...options });
}
