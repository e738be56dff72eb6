// SPDX-License-Identifier: MIT
//
// The parts of a browser that the page's modules use, as far as these tests need them.

/** A document; `hidden`: its tab is not visible. */
export class Stage extends EventTarget {
  hidden = false;

  look(seen) {
    this.hidden = !seen;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

/** sessionStorage. */
export class Storage {
  kept = new Map();

  getItem(key) {
    return this.kept.get(key) ?? null;
  }

  setItem(key, value) {
    this.kept.set(key, String(value));
  }

  removeItem(key) {
    this.kept.delete(key);
  }
}

/** Waits, for a moment, until `claim` holds. */
export async function until(what, claim) {
  for (let i = 0; i < 500; i++) {
    if (claim()) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`${what}: never`);
}
