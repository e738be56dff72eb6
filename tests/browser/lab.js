// SPDX-License-Identifier: MIT
//
// The common part of the browser tests: hosts that misbehave on order and count their requests, a real gateway in front
// of them, callers, and a real browser. Everything is on loopback and ends with the test; every wait has a bound, and
// so has the whole file.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const PATIENCE = 60; // seconds, for anything: the machine may be busy with other tests
const WHOLE = 800; // seconds, for all tests of a file: a guard, idle it takes a twentieth of it

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** The promise, or a failure that names the missing event. */
export async function within(what, seconds, promise) {
  let timer;
  const late = new Promise((_, failed) => (timer = setTimeout(() => failed(new Error(`${what}: not within ${seconds} s`)), seconds * 1000)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits, generously, until `claim` holds; else the failure says what was missing. */
export async function until(what, claim, seconds = PATIENCE) {
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

/** The program under test, as a process. `log` is its stderr, `out` its stdout. */
export class Program {
  static running = new Set();

  constructor(args, options = {}) {
    const program = process.env.BECALM ?? path.resolve(import.meta.dirname ?? ".", "../../build/dev/becalm");
    this.process = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" }, ...options });
    this.log = this.out = "";
    this.process.stdout.on("data", (data) => (this.out += data));
    this.process.stderr.on("data", (data) => (this.log += data));
    Program.running.add(this);
    this.ended = new Promise((done) => this.process.on("close", done)).finally(() => Program.running.delete(this));
  }

  /** It must end with 0, soon, and without a sanitizer's report. */
  async end(signal = "SIGTERM") {
    this.process.kill(signal);
    const code = await within(`the end after ${signal}`, PATIENCE, this.ended).catch((late) => {
      this.process.kill("SIGKILL");
      return late.message;
    });
    assert.doesNotMatch(this.log, /Sanitizer|runtime error:|assertion/);
    assert.equal(code, 0, this.log);
  }
}

// A test that leaves something behind, or waits for ever, ends here, and nothing outlives it: chromium goes with us.
setTimeout(() => {
  console.error(`not over within ${WHOLE} s; still open: ${process.getActiveResourcesInfo().join(", ")}`);
  for (const each of Program.running) each.process.kill("SIGKILL");
  process.exit(1);
}, WHOLE * 1000).unref();

/** A gateway of its own process, with this policy; `tls`: the days of its certificate; it speaks HTTP/2 and HTTP/1 then. */
export class Gateway {
  static async open(policy, { tls = null } = {}) {
    const gateway = new Gateway();
    gateway.folder = fs.mkdtempSync(path.join(os.tmpdir(), "becalm-browser-"));
    gateway.file = path.join(gateway.folder, "becalm.yaml");
    gateway.agent = new http.Agent({ keepAlive: true });
    gateway.stops = [];
    fs.writeFileSync(gateway.file, policy);
    if (tls !== null) gateway.certify(tls);
    const port = () => 10000 + Math.floor(Math.random() * 22000); // below the range of outgoing connections
    for (let i = 0; i < 5; i++) {
      gateway.listen = port();
      gateway.admin = `http://127.0.0.1:${port()}`;
      if (await gateway.start()) return gateway;
    }
    fs.rmSync(gateway.folder, { recursive: true, force: true });
    throw new Error(`can't start: ${gateway.program.log}`);
  }

  certify(days) {
    this.cert = path.join(this.folder, "cert.pem");
    this.key = path.join(this.folder, "key.pem");
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", this.key, "-out", this.cert, "-days", String(days), "-subj", "/CN=localhost"], { stdio: "ignore" });
  }

  /** False: it ended at once, because another process has one of its ports. */
  async start() {
    const address = `127.0.0.1:${this.listen}`;
    const listen = this.cert ? `[{address: "${address}", tls: {certificates: [{cert: ${this.cert}, key: ${this.key}}]}, protocols: [h2, h1]}]` : address;
    const sets = [`listen=${listen}`, `admin=${new URL(this.admin).host}`, "drain.delay=0s", "drain.limit=2s"];
    this.program = new Program(["proxy", ...sets.flatMap((each) => ["--set", each]), path.basename(this.file)], { cwd: this.folder });
    const { process } = this.program;
    const ready = () => fetch(`${this.admin}/readyz`).then((answer) => answer.ok, () => false);
    await until("a gateway that is ready", async () => process.exitCode !== null || (await ready()));
    return process.exitCode === null;
  }

  /** As a crash does it. */
  async kill() {
    this.program.process.kill("SIGKILL");
    await within("the end after SIGKILL", PATIENCE, this.program.ended);
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
      request.setTimeout(PATIENCE * 1000, () => request.destroy(new Error("no answer")));
      request.end();
    });
  }

  /** Calls at a steady pace, until the returned function is called or the gateway is closed. */
  traffic(where, everyMs) {
    const all = new Set();
    const timer = setInterval(() => {
      const call = this.call(where).catch(() => {});
      all.add(call);
      call.then(() => all.delete(call));
    }, everyMs);
    const stop = () => {
      clearInterval(timer);
      return Promise.all(all);
    };
    this.stops.push(stop);
    return stop;
  }

  async close() {
    await Promise.all(this.stops.map((stop) => stop()));
    this.agent.destroy();
    await this.program.end();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The system's chromium (`run` says which), with a profile that is forgotten. */
export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, timeout: PATIENCE * 1000 });
}

/** Its end may take as long as it likes, but not for us: it is killed with this process. */
export async function closeBrowser(browser) {
  await within("the browser's end", PATIENCE, browser?.close());
}

/** A page that fails the test on any script error, on any request that leaves the gateway, on any breach of the CSP. */
export async function openPage(browser, { width = 1400, height = 900, dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE * 1000);
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
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(fs.readFileSync(AXE, "utf8"));
  const found = await page.evaluate('axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)');
  const said = found.map((each) => `${each.id}: ${each.help}\n  ${each.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n  ")}`);
  assert.equal(found.length, 0, `${what}: ${said.join("\n")}`);
}

/** Waits until the browser has drawn the changes of the page. */
export async function drawn(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
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
