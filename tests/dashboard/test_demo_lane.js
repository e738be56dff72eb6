// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { thicknessOf } from "../../dashboard/demo_lane.js";

test("an arrow is as thick as what it carries", () => {
  assert.equal(thicknessOf(0), 1);
  assert.equal(thicknessOf(27), 30);
  assert.equal(thicknessOf(1000), 30, "and no thicker");
  assert.ok(Math.abs(thicknessOf(14) - thicknessOf(13) - (thicknessOf(2) - thicknessOf(1))) < 1e-9, "linear");
  assert.equal(thicknessOf(NaN), 1);
  assert.equal(thicknessOf(undefined), 1);
});
