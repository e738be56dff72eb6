// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { hostSaid } from "../../dashboard/service.js";

const host = (more) => ({ usable: true, ejected: false, attempts: 0, failed: 0, ...more });

test("a host that fails is said to, though it is used", () => {
  assert.equal(hostSaid(host()), "● usable");
  assert.equal(hostSaid(host({ attempts: 10, failed: 1 })), "● usable, failed 10 % of 10 attempts");
  assert.equal(hostSaid(host({ attempts: 1, failed: 1 })), "✗ failing: 100 % of 1 attempt");
  assert.equal(hostSaid(host({ attempts: 8, failed: 8, ejected: true, ejectedForMs: 4000 }), true), "✗ failing: 100 % of 8 attempts");
  assert.equal(hostSaid(host({ attempts: 8, failed: 8, ejected: true, ejectedForMs: 4000 }), false), "△ ejected, back in 4 s");
  assert.equal(hostSaid(host({ usable: false, attempts: undefined, failed: undefined })), "✗ not usable");
});
