// SPDX-License-Identifier: MIT
//
// The demonstration in a real browser: back is hurt and healed by its buttons, and the figures of the page are compared
// with the counts of the services. Bounds are generous: the point is which lane multiplies the load and which lane
// recovers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Program, accessible, closeBrowser, drawn, fits, openBrowser, openPage, picture, until } from "./lab.js";

let browser;
before(async () => (browser = await openBrowser()));
after(() => closeBrowser(browser));

/**
 * A demonstration, and a page that looks at it. It must end with 0 and without a sanitizer's report. The order to be healthy
 * ends the storm that the demonstration plays by itself after ten seconds, which a busy machine may need for the page alone.
 */
async function scene(t, look) {
  const demo = new Program(["demo"]);
  const page = await openPage(browser, look);
  t.after(async () => {
    await page.context().close();
    await demo.end("SIGINT");
    assert.equal(demo.log, "");
    assert.deepEqual(page.problems, []);
  });
  const url = await until("its address", () => demo.out.match(/(http:\/\/127\.0\.0\.1:\d+)\/\s/)?.[1]);
  const order = await fetch(`${url}/api/fault/healthy`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  assert.equal(order.status, 200);
  await page.goto(url);
  await page.locator('#link[data-link="live"]').waitFor();
  const state = async () => (await fetch(`${url}/api/demo?since=1000000`)).json();
  return { page, url, state };
}

const shown = (page, lane, name) => page.locator(`[data-lane="${lane}"] [data-figure="${name}"]`).textContent();
const plain = (text) => Number.parseFloat(text.replaceAll(",", ""));
const press = (page, fault) => page.locator(`[data-fault="${fault}"]`).click();

/** The picture at the top of the README: the storm and the calm, some seconds after healing. `make picture` keeps it. */
async function readme(page, healed, state) {
  await page.setViewportSize({ width: 1200, height: 900 });
  await until("some seconds after healing", async () => (await state()).ticks > healed + 14);
  await drawn(page);
  const { y, height } = await page.locator('[data-lane="naive"] .chart').first().boundingBox();
  await picture(page, "demo", { fullPage: true, clip: { x: 0, y: 0, width: 1200, height: Math.ceil(y + height + 14) } });
}

test("a fault by its button: one lane storms, the other does not, and only one is back", async (t) => {
  const { page, state } = await scene(t);
  await until("some calls", async () => (await state()).ticks > 4);
  await until("all is well", async () => (await page.locator("#fault").textContent()) === "healthy");
  await accessible(page, "healthy");

  await press(page, "dead");
  await until("the API agrees", async () => (await state()).fault === "dead");
  await until("so does the page", async () => (await page.locator('[data-fault="dead"]').getAttribute("aria-pressed")) === "true");
  await until("a storm on the left", async () => plain(await shown(page, "naive", "factor")) > 5);
  await until("no success on the left", async () => plain(await shown(page, "naive", "success")) < 50);
  await until("a figure on the right", async () => !Number.isNaN(plain(await shown(page, "becalm", "factor"))));
  assert.ok((await state()).lanes[1].peakFactor < 2, "no storm on the right");
  const thickness = async (lane) => Number(await page.locator(`[data-lane="${lane}"] .flow-line`).last().getAttribute("stroke-width"));
  await until("the arrow to back is thick on the left", async () => (await thickness("naive")) > 2 * (await thickness("becalm")));
  assert.equal(await page.locator(".flow-node[data-hurt]").count(), 2);
  await accessible(page, "hurt");
  await picture(page, "demo-hurt");

  await press(page, "healthy");
  const healed = (await state()).ticks;
  await until("the right is back", async () => (await shown(page, "becalm", "after")) === "back");
  await until("the right succeeds", async () => plain(await shown(page, "becalm", "success")) > 95);
  const arrivals = async () => (await state()).lanes.map((lane) => lane.services[2].arrivalsTotal);
  await until("three times the requests on the left", async () => ((left, right) => left > 3 * right)(...(await arrivals())));
  await until("the left is still down", async () => (await shown(page, "naive", "after")) === "still down");
  await until("it is said", async () => /^Naive retries are still down, .* Becalm was back after/.test(await page.locator("#verdict").textContent()));
  assert.match(await page.locator('[data-lane="becalm"]').textContent(), /refused since the fault.*\d (limit|shed|stopped|deadline|breaker open|budget empty)/);
  await readme(page, healed, state);

  await page.locator("#simulate").click();
  await until("simulated", async () => /simulated in/.test(await page.locator("#simulated").textContent()));
  await drawn(page);
  const legend = page.locator('[data-lane="naive"] .legend li', { hasText: "simulated" }).first();
  await until("the simulation's value", async () => /simulated [\d.k]+$/.test(await legend.textContent()));
  await accessible(page, "healed");
  await picture(page, "demo-healed");

  await page.locator("#pause").click();
  await until("no users", async () => (await shown(page, "naive", "after")) === "no users");
  assert.match(await page.locator("#verdict").textContent(), /^All users have stopped\. /);
  await until("users are back", async () => !(await state()).paused);
  await until("the left is back, too", async () => (await shown(page, "naive", "after")) === "back");
  assert.match(await page.locator("#verdict").textContent(), /^Naive retries were back only after all users had been stopped\. Becalm was back after/);
});

test("the curves of both lanes are in the first screen", async (t) => {
  const { page } = await scene(t);
  await page.locator('[data-lane="becalm"] canvas').first().waitFor();
  for (const lane of ["naive", "becalm"]) {
    const { y, height } = await page.locator(`[data-lane="${lane}"] .plot`).first().boundingBox();
    assert.ok(y + height <= 900, `${lane}: ${y + height}`);
  }
  await picture(page, "demo-first", {});
});

test("what it shows is what the services counted", async (t) => {
  const { page, state } = await scene(t);
  await press(page, "slow");
  await until("some failures", async () => (await state()).lanes[0].failedTotal > 20);
  const cell = (lane, service, name) => page.locator(`[data-lane="${lane}"] [data-service="${service}"][data-cell="${name}"]`).textContent();
  await until("the page agrees with the API", async () => {
    const { lanes, paused } = await state();
    if (!paused) await page.locator("#pause").click(); // users come back by themselves, and then figures move
    const checks = lanes.map(async (lane) => {
      const back = lane.services[2];
      const more = await page.locator(`[data-lane="${lane.name}"] [data-more="factor"]`).textContent();
      const [arrivals, calls] = more.match(/[\d,]+ for [\d,]+ calls/)[0].match(/[\d,]+/g).map(plain);
      const failed = plain(await page.locator(`[data-lane="${lane.name}"] [data-more="success"]`).textContent());
      return arrivals === back.arrivalsTotal && calls === lane.begunTotal && failed === lane.failedTotal;
    });
    return (await Promise.all(checks)).every(Boolean);
  });
  assert.equal(await cell("naive", "back", "breaker"), "none");
  assert.equal(await cell("naive", "back", "budget"), "no limit");
  assert.match(await cell("naive", "back", "inFlight"), /^[\d,]+ \(no limit\)$/);
  assert.match(await cell("becalm", "back", "inFlight"), /^[\d,]+ of [\d,]+$/); // 10,000 until it has learned
  assert.match(await cell("becalm", "back", "breaker"), /closed|open/);
  assert.ok(plain(await cell("becalm", "back", "budget")) >= 0);
});

test("by keyboard alone, in the dark, on a phone", async (t) => {
  const { page, state } = await scene(t, { width: 390, height: 844, dark: true });
  await fits(page, "phone");
  await page.locator('[data-fault="errors"]').focus();
  await page.keyboard.press("Enter");
  await until("the API agrees", async () => (await state()).fault === "errors");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await until("healed", async () => (await state()).fault === "healthy");
  await accessible(page, "phone");
  const first = await page.locator("#strip").boundingBox();
  assert.ok(first.y + first.height < 844, "both lanes' numbers are in the first screen of a phone");
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  for (const brief of await page.locator("#strip p").all()) {
    const { y, height } = await brief.boundingBox();
    assert.ok(y >= 0 && y + height < 200, "both lanes' numbers are in sight, however far one has scrolled");
    assert.match(await brief.textContent(), /(Naive retries|Becalm): .* at back, .* success/);
  }
  await picture(page, "demo-phone-strip", {});
  await picture(page, "demo-phone");
  for (const width of [1920, 1322, 1132, 762]) {
    await page.setViewportSize({ width, height: 1080 });
    await drawn(page);
    await fits(page, `${width}`);
    await picture(page, `demo-${width}`);
  }
});
