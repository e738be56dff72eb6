// SPDX-License-Identifier: MIT
//
// The page of a fleet: real gateways that share a budget in a real redis-server, looked at in a real browser.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { Gateway, Host, accessible, closeBrowser, drawn, fits, openBrowser, openPage, picture, until } from "./lab.js";

const missing = spawnSync("redis-server", ["--version"]).error ? "redis-server is not installed" : false;
let browser;
before(async () => (browser = await openBrowser()));
after(() => closeBrowser(browser));

/** A server of this test's own, in a fresh folder. */
class Redis {
  static async open() {
    const redis = new Redis();
    redis.folder = fs.mkdtempSync(path.join(os.tmpdir(), "becalm-redis-"));
    for (let i = 0; i < 5; i++) {
      redis.port = 10000 + Math.floor(Math.random() * 22000);
      redis.process = spawn("redis-server", ["--port", String(redis.port), "--bind", "127.0.0.1", "--save", "", "--dir", redis.folder], { stdio: "ignore" });
      await until("a redis-server", async () => redis.process.exitCode !== null || (await redis.says("INFO", "server")).includes(`process_id:${redis.process.pid}\r`));
      if (redis.process.exitCode === null) return redis;
    }
    throw new Error("redis-server does not start");
  }

  /** The first part of its answer; "" if there is none. */
  says(...words) {
    return new Promise((done) => {
      const link = net.connect(this.port, "127.0.0.1");
      link.on("error", () => done(""));
      link.on("close", () => done("")); // another process that has the port may not answer
      link.on("data", (data) => (link.destroy(), done(String(data))));
      link.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    });
  }

  async kill() {
    const ended = new Promise((done) => this.process.on("exit", done));
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGKILL");
      await ended;
    }
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Most share one budget; `percent` is another policy. `also`: a second budget in a store that does not exist. */
const policy = (host, redis, { percent = 20, also = false } = {}) => `fleet: shop
store: {redis: "redis://127.0.0.1:${redis.port}", timeout: 20s}
defaults: {breaker: {enabled: false}, limit: {kind: none}, maxRetries: 3, initialDelay: 1ms, maxDelay: 2ms, budget: {kind: none, shared: {percent: ${percent}}}}
services:
  a: {hosts: ["${host.address}"], match: {prefix: /}}
${also ? `  b: {hosts: ["${host.address}"], match: {prefix: /b}, budget: {shared: {redis: "redis://127.0.0.1:1"}}}\n` : ""}`;

test("the fleet is shown worst first, against its budget, and the store's death is said", { skip: missing }, async (t) => {
  const host = await Host.open(() => ({ status: 503 }));
  const redis = await Redis.open();
  const gateways = await Promise.all([{}, {}, { percent: 5 }, { also: true }].map((more) => Gateway.open(policy(host, redis, more))));
  const [first, , other, half] = gateways;
  const page = await openPage(browser);
  t.after(async () => {
    await page.context().close();
    await Promise.all(gateways.map((each) => each.close()));
    await Promise.all([host.close(), redis.kill()]);
    assert.deepEqual(page.problems, []);
  });
  const ids = new Map();
  for (const each of gateways) ids.set(each, (await each.state()).id);
  // Died 20 s ago, however long the rest takes: after a minute it would be forgotten.
  const ghost = () => redis.says("HSET", "becalm:{shop}:who", "ghost", `${Date.now() - 20000} pod-9 0.1.0 abc 7000 0 1 0 60 7000 0`);
  await ghost();
  first.traffic("/x", 20);
  await page.goto(`${first.admin}/`);
  await page.locator("nav a", { hasText: "Fleet" }).click(); // it is offered, since there is one
  await page.getByRole("heading", { level: 1, name: "Fleet" }).waitFor();

  const tile = (label) => page.locator(".tile", { has: page.locator(".tile-label", { hasText: label }) });
  await until("all of them", async () => (await ghost(), (await tile("Instances").locator(".tile-value").textContent()) === "5"));
  // The report of each gateway may be from its first second, without a lease; and a busy machine makes any of them
  // silent for a while.
  const wanted = [
    ["ghost", "silent"],
    [ids.get(half), "degraded"],
    [ids.get(other), "differs"],
  ];
  let order;
  const rows = () => page.locator("tr[data-instance]").evaluateAll((all) => all.map((row) => [row.dataset.instance, row.dataset.state]));
  await until("worst first", async () => (await ghost(), (order = await rows()), JSON.stringify(order.slice(0, 3)) === JSON.stringify(wanted) && order.slice(3).every((each) => each[1] === "fine"))).catch((error) => {
    error.message += ": " + JSON.stringify({ wanted, order });
    throw error;
  });
  await until("how many of each", async () => (await ghost(), (await tile("Instances").locator(".note").textContent()) === "1 silent, 1 degraded, 1 different"));
  await page.locator(`tr[data-instance="${ids.get(first)}"]`, { hasText: "this one" }).waitFor();

  await until("retries against the budget", async () => /^\d[\d.]* %$/.test(await tile("Retries per call").locator(".tile-value").textContent()));
  assert.equal(await tile("Retries per call").locator(".note").textContent(), "of 20 % allowed");
  assert.match(await tile("Store").locator(".tile-value").textContent(), /^up$/);
  assert.match(await tile("Store").locator(".note").textContent(), /^answered [\d.]+ (µs|ms|s) ago$/);
  await page.locator(".store .policy tbody tr", { hasText: "leased" }).waitFor();
  await until("the same as the API", async () => {
    const answer = await (await fetch(`${first.admin}/api/fleet`)).json();
    const there = answer.stores[0].instances.find((each) => each.id === ids.get(first));
    const row = page.locator(`tr[data-instance="${ids.get(first)}"]`);
    return there.retriesPerSecond > 0 && (await row.locator(".c-calls").textContent()) !== "0/s" && (await row.locator(".c-policy").textContent()) === there.policy;
  });

  await drawn(page);
  await accessible(page, "fleet");
  await picture(page, "fleet-wide");
  for (const width of [1920, 1252, 1000, 942, 762, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await drawn(page);
    await fits(page, `fleet, ${width}`);
  }
  await accessible(page, "fleet, narrow");
  await picture(page, "fleet-narrow");

  await redis.kill();
  await page.locator('.tile[data-weight="critical"]', { hasText: "away" }).waitFor();
  assert.match(await tile("Store").locator(".note").textContent(), /^(closed|refused); answered /);
  await page.locator(".store .policy tbody tr", { hasText: "on its own share" }).waitFor();
});

test("before the list is read nobody is counted", { skip: missing }, async (t) => {
  const host = await Host.open();
  const redis = await Redis.open();
  const gateway = await Gateway.open(policy(host, redis));
  const page = await openPage(browser);
  t.after(async () => {
    await page.context().close();
    await gateway.close();
    await Promise.all([host.close(), redis.kill()]);
    assert.deepEqual(page.problems, []);
  });
  await page.route("**/api/fleet", async (route) => {
    const answer = await (await route.fetch()).json();
    for (const store of answer.stores) Object.assign(store, { readSecondsAgo: undefined, instances: [] });
    await route.fulfill({ json: answer });
  });
  await page.goto(`${gateway.admin}/#/fleet`);
  await page.getByText("The list of instances has not been read yet.").waitFor();
  const values = await page.locator(".tile-value").allTextContents();
  assert.deepEqual(values.slice(1), ["–", "–", "–", "–"], "no number of anything");
});

test("who shares nothing is offered no such page, and the page says so", async (t) => {
  const host = await Host.open();
  const gateway = await Gateway.open(`services:\n  a: {hosts: ["${host.address}"], match: {prefix: /}}\n`);
  const page = await openPage(browser);
  t.after(async () => {
    await page.context().close();
    await gateway.close().finally(() => host.close());
    assert.deepEqual(page.problems, []);
  });
  await page.goto(`${gateway.admin}/#/fleet`);
  await page.getByText("This gateway has no fleet").waitFor();
  await until("what the gateway is", async () => (await page.locator("#about").textContent()) !== "");
  assert.equal(await page.locator("nav a", { hasText: "Fleet" }).isVisible(), false);
});
