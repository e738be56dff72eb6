// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { percent, plural } from "../../dashboard/format.js";
import { placeOf } from "../../dashboard/place.js";

test("one is not many", () => {
  assert.deepEqual([0, 1, 2, 1200].map((n) => plural(n, "service")), ["0 services", "1 service", "2 services", "1,200 services"]);
  assert.equal(plural(2, "retry", "retries"), "2 retries");
});

test("a share is never rounded to all or nothing", () => {
  assert.deepEqual([undefined, 1, 0, 0.99999, 0.0001, 0.5].map(percent), ["–", "100 %", "0 %", ">99.99 %", "<0.1 %", "50 %"]);
});

test("any address is a view", () => {
  const place = placeOf("#/service/a%20b?endpoint=x");
  assert.deepEqual([place.page, place.name, place.query.get("endpoint")], ["service", "a b", "x"]);
  assert.equal(placeOf("#/service/%").name, "%");
  assert.equal(placeOf("#/service/a/b").name, "a/b");
  assert.equal(placeOf("").page, "services");
});
