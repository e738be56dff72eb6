// SPDX-License-Identifier: MIT
//
// The page of becalm sim --html in a real browser: nothing that it says is cut off, wherever it is looked at.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { accessible, fits, openBrowser, openPage, picture } from "./lab.js";

const PROGRAM = process.env.BECALM ?? path.resolve(import.meta.dirname ?? ".", "../../build/dev/becalm");

// Two faults that touch, one that is short and at the very end, and names that are longer than their bands.
const FAULTS = `length: 120s
services: {a-service-with-a-name: {time: {exponential: 10ms}, workers: 10}, back: {time: {constant: 1ms}}}
clients: {users: {to: a-service-with-a-name, rate: 300/s}, others: {to: back, rate: 3/s}}
faults:
  dead: {at: 30s, for: 20s, service: a-service-with-a-name, dead: true}
  slow-for-everybody: {at: 50s, for: 4s, service: a-service-with-a-name, latency: 2s}
  network-of-the-second-zone: {at: 118s, for: 2s, service: back, partition: true}
`;

// A queue of more than a million.
const STORM = `length: 15s
services: {api: {time: {exponential: 10ms}, workers: 10}}
clients: {users: {to: api, rate: 30000/s}}
faults: {cut: {at: 5s, for: 5s, service: api, capacity: 0.3}}
`;

let browser;
let folder;
before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "becalm-sim-"));
  fs.writeFileSync(path.join(folder, "faults.yaml"), FAULTS);
  fs.writeFileSync(path.join(folder, "storm.yaml"), STORM);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true });
});

/** The texts of pictures that are not wholly inside of them. */
const cut = () =>
  [...document.querySelectorAll("svg text")]
    .filter((text) => {
      const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
      return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
    })
    .map((text) => text.textContent);

/** Words above faults that lie on each other. */
const overlaid = () =>
  [...document.querySelectorAll("svg")].flatMap((svg) => {
    const words = [...svg.querySelectorAll(".fault-word")].map((word) => ({ word: word.textContent, box: word.getBoundingClientRect() }));
    return words.flatMap((a, i) => words.slice(i + 1).filter((b) => a.box.left < b.box.right && b.box.left < a.box.right).map((b) => `${a.word} on ${b.word}`));
  });

const PAGES = {
  "a storm with millions in the queue": ["storm.yaml", "--compare", "naive,becalm"],
  "several faults": ["faults.yaml", "--compare", "none,becalm"],
  "one run of a chain": ["chain", "--set", "length=70s"],
  "connections": ["herd", "--compare", "all"],
};

for (const [name, words] of Object.entries(PAGES)) {
  test(`${name}: every word is inside its picture, wide and narrow`, { timeout: 120000 }, async (t) => {
    const file = path.join(folder, `${words[0]}.html`);
    execFileSync(PROGRAM, ["sim", ...words, "--html", file], { cwd: folder, stdio: "ignore" });
    for (const look of [{ width: 1280, height: 800 }, { width: 360, height: 740, dark: true }]) {
      const page = await openPage(browser, look);
      t.after(() => page.context().close());
      await page.goto(pathToFileURL(file).href);
      assert.ok((await page.locator("svg text").count()) > 10);
      assert.deepEqual(await page.evaluate(cut), []);
      assert.deepEqual(await page.evaluate(overlaid), []);
      await fits(page, name);
      if (!look.dark || words[0] === "faults.yaml") await accessible(page, name); // colours are the same on all of them
      await picture(page, `sim-${words[0]}-${look.width}`);
    }
  });
}
