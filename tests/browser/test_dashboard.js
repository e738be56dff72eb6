// SPDX-License-Identifier: MIT
//
// The dashboard of a real gateway in a real browser: its figures are compared with those of the API and with the counts
// of hosts; every button is used.

import assert from "node:assert/strict";
import fs from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import { after, before, test } from "node:test";
import tls from "node:tls";

import { Gateway, Host, accessible, closeBrowser, drawn, fits, openBrowser, openPage, picture, sleep, until } from "./lab.js";

let browser;
before(async () => (browser = await openBrowser()));
after(() => closeBrowser(browser));

/** Hosts, a gateway in front of them, and a page that looks at it; all gone after the test, and no script went wrong. */
async function scene(t, { replies = [() => ({})], policy, tls: days = null, ...look } = {}) {
  const hosts = await Promise.all(replies.map((reply) => Host.open(reply)));
  const text = policy?.(hosts) ?? `services:\n  a:\n    hosts: [${hosts.map((host) => `"${host.address}"`).join(", ")}]\n    match: {prefix: /}\n`;
  const gateway = await Gateway.open(text, { tls: days });
  const page = await openPage(browser, look);
  t.after(async () => {
    await page.context().close();
    await gateway.close().finally(() => Promise.all(hosts.map((host) => host.close())));
    assert.deepEqual(page.problems, []);
  });
  return { hosts, gateway, page };
}

const live = (page) => page.locator('#link[data-link="live"]').waitFor();
/** The page's time goes on until its link to the gateway is in that state. */
const passes = (page, link) =>
  until(link, async () => {
    if ((await page.locator("#link").getAttribute("data-link")) === link) return true;
    await page.clock.fastForward(1000);
    return false;
  });
const figure = (page, name) => page.locator(`[data-figure="${name}"]`).textContent();
const sum = (counts) => Object.values(counts).reduce((total, each) => total + each, 0);
const plain = (text) => Number(text.replaceAll(",", ""));

test("what it counts is what the API says and what the hosts got", async (t) => {
  let n = 0;
  const { hosts, gateway, page } = await scene(t, { replies: [() => (++n % 5 === 0 ? { status: 503 } : {})] });
  for (let i = 0; i < 60; i++) await gateway.call("/x");
  await page.goto(`${gateway.admin}/#/service/a`);
  await live(page);
  const state = await until("all calls counted", async () => {
    const target = await gateway.target("a");
    return target.arrivals === 60 && target.inFlight === 0 && target;
  });
  await until("the page caught up", async () => (await figure(page, "arrivals")) === "60");
  assert.equal(plain(await figure(page, "first")), sum(state.calls.first_attempt));
  assert.equal(plain(await figure(page, "after")), sum(state.calls.after_retry));
  assert.equal(plain(await figure(page, "failed")), sum(state.calls.failed));
  assert.equal(plain(await figure(page, "attempts")), hosts[0].seen);
  assert.equal(plain(await figure(page, "retries")), sum(state.retries));
  assert.equal(await figure(page, "amplification"), `${state.amplification.toFixed(2)}×`);
  assert.ok(sum(state.retries) > 0, "the test saw retries");
});

/** `count` requests by HTTP/2 over TLS, on one connection. */
async function askH2(gateway, times) {
  const session = http2.connect(`https://127.0.0.1:${gateway.listen}`, { rejectUnauthorized: false });
  for (let i = 0; i < times; i++) {
    const stream = session.request({ ":path": "/" });
    stream.resume();
    await new Promise((done, failed) => stream.on("end", done).on("error", failed));
    stream.close();
  }
  await new Promise((done) => session.close(done));
}

test("connections: what is spoken, handshakes, what was ended, and when certificates expire", async (t) => {
  const { gateway, page } = await scene(t, { tls: 3 });
  await askH2(gateway, 3);
  const plain = net.connect(gateway.listen, "127.0.0.1", () => plain.end("GET / HTTP/1.1\r\n\r\n"));
  await new Promise((done) => plain.resume().on("close", done));
  const wrong = tls.connect({ port: gateway.listen, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] }, () => wrong.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand then nonsense, which is no frame"));
  await new Promise((done) => wrong.resume().on("error", done).on("close", done));
  await page.goto(`${gateway.admin}/#/connections`);
  await live(page);
  const row = async (where) => page.locator(`tr[${where}] > *`).allTextContents();
  await until("all of it is counted", async () => (await row('data-why="protocol"')).length > 0 && (await row('data-result="plain"')).length > 0);
  assert.deepEqual(await row('data-service="a"'), ["a", "HTTP/2 100 %", "3", "HTTP/1 100 %", "3"]);
  assert.deepEqual(await row('data-result="full"'), ["full", "2", "–"]);
  assert.deepEqual(await row('data-result="plain"'), ["plain", "1", "–"]);
  assert.deepEqual(await row('data-why="protocol"'), ["protocol", "1", "0"]);
  assert.match((await row('data-weight="warning"'))[1], /^△ expires in 2 d 23 h|^△ expires in 3 d 0 h/);
  await page.locator("#notices", { hasText: "cert.pem expires in" }).waitFor();
  for (const [look, width] of [["light", 1400], ["phone", 390]]) {
    await page.setViewportSize({ width, height: 900 });
    await drawn(page);
    await accessible(page, `connections, ${look}`);
    await fits(page, `connections, ${look}`);
    await picture(page, `connections-${look}`);
  }
});

test("rates come live, and charts draw them", async (t) => {
  const { gateway, page } = await scene(t);
  const stop = gateway.traffic("/x", 25);
  await page.goto(`${gateway.admin}/`);
  await live(page);
  const row = page.locator('tr[data-name="a"]');
  await until("a rate in the list", async () => /^\d.*\/s$/.test((await row.locator(".c-requests span").textContent()).trim()) && (await row.locator(".c-requests span").textContent()).trim() !== "0/s");
  await row.locator("a").click();
  await page.getByRole("heading", { level: 1, name: /^a/ }).waitFor();
  const chart = page.getByRole("img", { name: /^Requests and retries: requests [1-9]/ });
  await chart.waitFor();
  assert.equal(await chart.locator("canvas").count(), 1);
  const ink = await chart.locator("canvas").evaluate((canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0));
  assert.ok(ink, "something is drawn");
  for (const range of ["1h", "6h", "24h", "5m"]) {
    await page.locator(".ranges a", { hasText: range }).first().click();
    await page.locator(`.ranges a[aria-current="true"]`, { hasText: range }).waitFor();
    if (range === "5m") continue;
    await page.getByText(/^The history begins at \d\d:\d\d\.$/).waitFor();
    await chart.waitFor(); // it has the step that is running
  }
  await stop();

  await page.locator('nav a[data-page="policy"]').click();
  await page.getByRole("heading", { level: 1, name: "Policy" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "main", "a new view has the keyboard");
  await page.goto(`${gateway.admin}/#/service/%`);
  await page.getByText("This service is not in the policy.").waitFor();
});

test("a breaker is forced and released, each only after a confirmation, by keyboard too", async (t) => {
  const { hosts, gateway, page } = await scene(t);
  await gateway.call("/x");
  await page.goto(`${gateway.admin}/#/service/a`);
  await live(page);
  const force = page.getByRole("button", { name: "Force open" });
  await until("it may be forced", () => force.isEnabled());
  await force.click();
  await page.getByRole("dialog", { name: /Force the breaker of a \/ default open/ }).waitFor();
  await accessible(page, "dialog");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await gateway.target("a")).breaker.state, "CLOSED", "cancelled: nothing happens");

  await force.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab"); // from Cancel to the order
  await page.keyboard.press("Enter");
  await until("the API says so", async () => (await gateway.target("a")).breaker.state === "FORCED_OPEN");
  await until("the page says so", async () => (await figure(page, "breaker")) === "forced open");
  await page.locator(".badge", { hasText: "forced open" }).first().waitFor();
  const seen = hosts[0].seen;
  assert.equal(await gateway.call("/x"), 503);
  assert.equal(hosts[0].seen, seen, "nothing reached the host");
  await page.locator(".moves li", { hasText: "forced open" }).first().waitFor();

  await page.getByRole("button", { name: "Release…" }).click();
  await page.getByRole("button", { name: "Release", exact: true }).click();
  await until("released", async () => (await figure(page, "breaker")) === "closed");
  assert.equal(await gateway.call("/x"), 200);
});

test("a reload says in place what is wrong with the file", async (t) => {
  const { gateway, page } = await scene(t);
  const good = fs.readFileSync(gateway.file, "utf8");
  await page.goto(`${gateway.admin}/#/policy`);
  await live(page);
  await page.locator('tr[data-key="maxRetries"]').waitFor();
  fs.writeFileSync(gateway.file, `${good}    maxRetrys: 7\n`);
  await page.getByRole("button", { name: "Reload" }).click();
  const said = page.locator("main .notice.bad");
  await said.waitFor();
  assert.match(await said.textContent(), /becalm\.yaml:5:\d+ error: .*maxRetrys.*maxRetries/s);
  assert.match(await page.locator('tr[data-key="maxRetries"]').textContent(), /2default/, "the policy before stays");
  await until("the state is known", async () => (await gateway.state()).reload.successful === false);
  assert.equal(await page.locator(".notice.bad").count(), 1, "it is said once");
  await accessible(page, "policy with an error");
  await picture(page, "reload-error", {});

  fs.writeFileSync(gateway.file, `${good}    maxRetries: 1\n`);
  await page.getByRole("button", { name: "Reload" }).click();
  await page.locator("main .notice.good").waitFor();
  await until("its origin is shown", async () => /1service becalm\.yaml:5:17/.test(await page.locator('tr[data-key="maxRetries"]').textContent()));
  await page.locator("#notices .notice").waitFor({ state: "detached" });
  fs.writeFileSync(gateway.file, "services: 7\n");
  await page.locator('nav a[data-page="services"]').click();
  await fetch(`${gateway.admin}/api/reload`, { method: "POST" });
  await page.locator("#notices .notice.bad").waitFor(); // where nothing else tells it
});

test("a decision shows each attempt, each wait, why, and what would change it", async (t) => {
  const { gateway, page } = await scene(t, { replies: [() => ({ status: 503 }), () => ({ status: 503 }), () => ({ status: 503 })] });
  assert.equal(await gateway.call("/why", { headers: { "x-request-id": "look-at-me" } }), 503);
  const { decisions } = await (await fetch(`${gateway.admin}/api/decisions`)).json();
  const [told] = decisions;
  await page.goto(`${gateway.admin}/#/decisions`);
  await live(page);
  const row = page.locator(".d-row", { hasText: "GET /why" });
  await row.focus();
  await page.keyboard.press("Enter");
  const detail = page.locator(".detail:visible");
  await detail.waitFor();
  assert.match(await detail.textContent(), new RegExp(told.sentence));
  assert.ok((await detail.textContent()).includes(told.change), "what would change it");
  assert.equal(await detail.locator("tbody tr").count(), told.attempts);
  const rows = await detail.locator("tbody tr").allTextContents();
  told.attempt.forEach((attempt, i) => assert.ok(rows[i].includes(attempt.host) && rows[i].includes("503"), rows[i]));
  assert.equal(await detail.locator(".t-wait").count(), told.attempts - 1, "each wait is drawn");
  await accessible(page, "decision");
  await picture(page, "decision", {});
});

test("a storm is told by sign, word and number", async (t) => {
  const naive = "    maxRetries: 3\n    initialDelay: 1ms\n    jitter: none\n    budget: {kind: none}\n    breaker: {enabled: false}\n    limit: {kind: none}\n    outlier: {maxEjectionPercent: 0}\n";
  const { gateway, page } = await scene(t, {
    replies: [() => ({ status: 503 })],
    policy: ([host]) => `services:\n  a:\n    hosts: ["${host.address}"]\n    match: {prefix: /}\n${naive}`,
  });
  for (let i = 0; i < 10; i++) await gateway.call("/x");
  await page.goto(`${gateway.admin}/#/service/a`);
  const storm = page.locator('.storm[data-storm="storm"]');
  await storm.waitFor();
  assert.match(await storm.textContent(), /▲ Retry storm/);
  assert.match(await storm.locator('[data-sign="retryShare"]').textContent(), /75 %.*above 50 %.*a sign/);
  await accessible(page, "storm");
  await picture(page, "storm", {});
});

test("a dead service is told so in one sentence, and its outage is one row", async (t) => {
  const { gateway, page } = await scene(t, { replies: [() => ({ status: 503 }), () => ({ status: 503 })], policy: (all) => `services:
  a:
    hosts: ["${all[0].address}", "${all[1].address}"]
    match: {prefix: /}
    breaker: {waitDurationInOpenState: 100ms}
` });
  gateway.traffic("/x", 20);
  await page.goto(`${gateway.admin}/#/service/a`);
  await live(page);
  const verdict = () => figure(page, "verdict");
  await until("what is the matter", async () => /^a answers no call and has answered none since the gateway started: both hosts fail with 503; the breaker is open since [\d:]{8}.* probes failed; .*callers\/s get 503\.$/.test(await verdict()));
  assert.equal(await page.locator(".verdict").getAttribute("data-weight"), "critical");
  await until("one row for it", async () => /^[\d:]{8} open since then, \d+ probes failed$/.test((await page.locator(".moves li").allTextContents()).join("|")));
  const { breaker } = await gateway.target("a");
  assert.ok(breaker.probesFailed > 0 && !Number.isNaN(new Date(breaker.since).getTime()), JSON.stringify(breaker));
  await page.setViewportSize({ width: 1280, height: 800 });
  const box = await page.locator(".verdict").boundingBox();
  assert.ok(box.y + box.height < 800, "it is on the first screen");
  await page.goto(`${gateway.admin}/#/`);
  await page.locator('.tile[data-weight="critical"]', { hasText: "callers get no answer" }).waitFor();
  await page.locator('.tile[data-weight="critical"]', { hasText: "a: breaker open" }).waitFor();
});

test("where no stream can be had it polls, and it comes back after the gateway did", async (t) => {
  const { gateway, page } = await scene(t);
  await page.clock.install(); // so that the page's waits need no time of ours
  await page.route("**/api/events", (route) => route.abort());
  await page.goto(`${gateway.admin}/`);
  await page.locator('#link[data-link="polling"]').waitFor();
  await page.locator('tr[data-name="a"]').waitFor();
  await page.unroute("**/api/events");
  await passes(page, "live");
  assert.match(await page.locator("#about").textContent(), /role gateway/);
  await gateway.kill();
  await passes(page, "lost");
  fs.writeFileSync(gateway.file, `role: sidecar\n${fs.readFileSync(gateway.file, "utf8").replace("  a:", "  b:")}`);
  assert.ok(await gateway.start(), "started again, at the same address");
  await passes(page, "live");
  await page.locator("#about", { hasText: "role sidecar" }).waitFor(); // the page shows the new process
  await page.locator('tr[data-name="b"]').waitFor();
  assert.equal(await page.locator('tr[data-name="a"]').count(), 0);
});

test("a service that a reload takes away says so, and comes back with the next", async (t) => {
  const { gateway, page } = await scene(t);
  const policy = fs.readFileSync(gateway.file, "utf8");
  await page.goto(`${gateway.admin}/#/service/a`);
  await live(page);
  await until("numbers", async () => (await figure(page, "arrivals")) === "0");
  for (const [text, gone] of [[policy.replace("  a:", "  b:"), true], [policy, false]]) {
    fs.writeFileSync(gateway.file, text);
    await fetch(`${gateway.admin}/api/reload`, { method: "POST" });
    await page.getByText("This service is not in the policy.").waitFor({ state: gone ? "visible" : "hidden" });
    await page.locator("#breaker-title").waitFor({ state: gone ? "hidden" : "visible" });
  }

  // A hidden tab sends no requests to the gateway, and catches up with the history.
  const look = (hidden) =>
    page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { value: is, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await look(true);
  await page.locator('#link[data-link="unseen"]').waitFor();
  const again = page.waitForRequest("**/api/history?service=a*");
  await look(false);
  await again;
  await live(page);
});

test("the lists go on while the keyboard is in them, and it stays where it is", async (t) => {
  const { gateway, page } = await scene(t, {
    replies: [() => ({ status: 503 })],
    policy: ([host]) => `services:\n  a:\n    hosts: ["${host.address}"]\n    match: {prefix: /}\n    maxRetries: 0\n    endpoints:\n      read: {match: {path: /read}}\n`,
  });
  await gateway.call("/first");
  await page.goto(`${gateway.admin}/#/decisions`);
  const first = page.locator(".d-row", { hasText: "GET /first" });
  await first.click();
  await first.click(); // open and closed again: the keyboard stays in it
  await gateway.call("/second");
  await page.locator(".d-row", { hasText: "GET /second" }).waitFor();
  assert.match(await page.evaluate(() => document.activeElement.textContent), /GET \/first/);

  await page.goto(`${gateway.admin}/#/service/a?endpoint=default`);
  const row = page.locator('tr[data-endpoint="read"]');
  await row.locator("a").click();
  await page.locator('tr[data-endpoint="read"][data-chosen]').waitFor();
  assert.equal(await page.locator("tr[data-chosen]").count(), 1);
  gateway.traffic("/read", 50);
  await until("its rate", async () => !/^(–|0\/s)$/.test(await row.locator("td").first().textContent()));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "read");
});

test("a gateway that says nothing any more is noticed", async (t) => {
  const { gateway, page } = await scene(t);
  await page.clock.install();
  await page.goto(`${gateway.admin}/`);
  await live(page);
  const polls = page.waitForRequest("**/api/sample");
  gateway.program.process.kill("SIGSTOP");
  t.after(() => gateway.program.process.kill("SIGCONT"));
  await page.clock.fastForward(9000);
  await polls;
  gateway.program.process.kill("SIGCONT");
  await page.locator('#link[data-link="polling"]').waitFor();
  await passes(page, "live");
});

test("the token is asked for once, and again if it is wrong", async (t) => {
  const folder = fs.mkdtempSync("/tmp/becalm-token-");
  t.after(() => fs.rmSync(folder, { recursive: true }));
  fs.writeFileSync(`${folder}/token`, "sesame\n");
  const { gateway, page } = await scene(t, { policy: ([host]) => `adminTokenFile: ${folder}/token\nservices:\n  a: {hosts: ["${host.address}"], match: {prefix: /}}\n` });
  gateway.headers = { authorization: "Bearer sesame" };
  await page.goto(`${gateway.admin}/`);
  const field = page.getByRole("textbox", { name: "Token" });
  await field.waitFor();
  await page.locator('#link[data-link="locked"]', { hasText: "token needed" }).waitFor();
  for (let i = 0; i < 3; i++) await page.keyboard.press("Escape");
  await field.fill("schlüssel");
  await page.getByRole("button", { name: "Use it" }).click();
  assert.equal(await field.evaluate((node) => node.validity.patternMismatch), true, "refused in place");
  for (const token of ["wrong", "sesame"]) {
    if (token === "sesame") await page.getByRole("alert").waitFor();
    await page.getByRole("textbox", { name: "Token" }).fill(token);
    await page.getByRole("button", { name: "Use it" }).click();
  }
  await live(page);
  await page.reload();
  await live(page);
  assert.equal(await page.getByRole("dialog").count(), 0);
});

// Which views axe judges: it takes seconds, and each rule that depends on the look is met in one of them.
const LOOKS = {
  light: { width: 1400, judged: ["services", "service", "decisions", "policy"] },
  dark: { width: 1400, dark: true, judged: ["services", "service"] },
  phone: { width: 390, height: 844, dark: true, judged: ["services", "policy"] },
  middle: { width: 1000, judged: [] }, // it only hides columns
};

async function looksRight(gateway, look, { judged, ...size }) {
  const page = await openPage(browser, size);
  for (const [view, place, ready] of [
    ["services", "#/", 'tr[data-name="payment"]'],
    ["service", "#/service/payment?endpoint=charge", ".chart canvas"],
    ["decisions", "#/decisions", ".d-row"],
    ["policy", "#/policy?service=payment", 'tr[data-key="maxRetries"]'],
  ]) {
    await page.goto(`${gateway.admin}/${place}`);
    await live(page);
    await page.locator(ready).first().waitFor();
    await drawn(page);
    if (judged.includes(view)) await accessible(page, `${view}, ${look}`);
    await fits(page, `${view}, ${look}`);
    await picture(page, `${view}-${look}`, { fullPage: view !== "decisions" }); // a hundred of them say no more than ten
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

test("every view is accessible, fits, and looks right: light and dark, phone and wide", async (t) => {
  let bad = false;
  const flaky = () => (Math.random() < (bad ? 0.85 : 0.15) ? { status: 503 } : { delay: 5 + Math.random() * 20 });
  const { hosts, gateway, page } = await scene(t, {
    replies: [flaky, flaky, () => ({ delay: 3 })],
    policy: (all) => `services:
  payment:
    hosts: ["${all[0].address}", "${all[1].address}"]
    match: {prefix: /pay}
    outlier: {consecutive5xxErrors: 5} # by the rate, hosts that fail alike all stay in
    endpoints:
      charge: {match: {path: /pay/charge}, idempotent: true}
      refund: {match: {path: /pay/refund}}
  ledger: {hosts: ["${all[2].address}"], match: {prefix: /ledger}}
  search: {hosts: ["127.0.0.1:9"], match: {prefix: /search}}
  reports: {hosts: ["127.0.0.1:9"], match: {prefix: /reports}}
`,
  });
  for (const [where, everyMs] of Object.entries({ "/pay/charge": 25, "/pay/refund": 90, "/ledger/x": 40, "/search": 60 })) gateway.traffic(where, everyMs);
  await page.goto(`${gateway.admin}/`);
  await page.locator(".badge", { hasText: "breaker open" }).waitFor();
  bad = true;
  await until("an empty budget", async () => (await gateway.target("payment", "charge")).overflow.budget_empty > 0);
  await page.locator('tr[data-name="payment"]', { hasText: "ejections ignored" }).waitFor(); // the longest text in there
  for (const width of [1920, 1252, 1000, 942, 762]) {
    await page.setViewportSize({ width, height: 900 });
    await drawn(page);
    await fits(page, `services, ${width}`);
  }
  bad = false;
  await Promise.all(Object.entries(LOOKS).map(([look, size]) => looksRight(gateway, look, size)));
  await page.goto(`${gateway.admin}/#/service/payment?endpoint=charge`);
  const endpoints = page.getByRole("region", { name: "Endpoints, as a table" });
  const says = () => endpoints.evaluate((node) => getComputedStyle(node, "::after").content);
  await page.setViewportSize({ width: 390, height: 844 });
  await until("a table that is cut says so", async () => /more to the right/.test(await says()));
  await endpoints.evaluate((node) => (node.scrollLeft = node.scrollWidth));
  await until("at its end it does not", async () => (await says()) === "none");
  await page.setViewportSize({ width: 1280, height: 1010 });
  await until("nor where all of it is seen", async () => (await endpoints.getAttribute("data-more")) === null);
  await page.locator(".chart canvas").first().waitFor();
  await drawn(page);
  await picture(page, "dashboard", {}); // of docs/dashboard.md; `make picture` keeps it
  assert.ok(hosts[0].seen > 0);
});

/** The milliseconds of work of the page in a span of time: its own CPU time, however busy the machine is. */
async function workedFor(page, milliseconds) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const worked = async () => (await session.send("Performance.getMetrics")).metrics.find((each) => each.name === "TaskDuration").value;
  const before = await worked();
  await sleep(milliseconds);
  return ((await worked()) - before) * 1000;
}

test("two hundred services: the list is whole, filtered at a key, and the page has time to spare", async (t) => {
  const names = Array.from({ length: 200 }, (_, i) => `service-${String(i).padStart(3, "0")}`);
  const { gateway, page } = await scene(t, {
    policy: ([host]) => `services:\n${names.map((name) => `  ${name}:\n    hosts: ["${host.address}"]\n    match: {prefix: /${name}}\n    endpoints:\n      read: {match: {path: /${name}/read}}\n`).join("")}`,
  });
  for (const name of names) await gateway.call(`/${name}/read`);
  await page.goto(`${gateway.admin}/`);
  await live(page);
  await page.getByText("200 services", { exact: true }).waitFor();
  assert.equal(await page.locator(".services tbody tr").count(), 200);
  const busy = await workedFor(page, 3000);
  const bytes = (await (await fetch(`${gateway.admin}/api/sample`)).text()).length;
  t.diagnostic(`200 services: ${bytes} bytes a second, ${Math.round(busy / 3)} ms of work a second`);
  assert.ok(busy > 0 && busy < 1500, `${busy} ms of work in 3000`);
  await page.getByLabel("Filter").fill("-19");
  await page.getByText("10 of 200 services").waitFor();
  assert.equal(await page.locator(".services tbody tr").count(), 10);
  await page.locator(".services tbody tr").last().locator("a").click();
  await page.getByRole("heading", { level: 1, name: /service-199/ }).waitFor();
});

test("where the build has no charts the numbers are still there", async (t) => {
  const { gateway, page } = await scene(t);
  await gateway.call("/x");
  await page.route("**/assets/uplot.*", (route) => route.fulfill({ status: 404, body: "" }));
  await page.goto(`${gateway.admin}/#/service/a`);
  await page.getByText("This build has no charts").first().waitFor();
  await until("numbers", async () => (await figure(page, "arrivals")) === "1");
});
