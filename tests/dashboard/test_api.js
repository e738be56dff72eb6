// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Stage, Storage, until } from "./stage.js";
import { Api, EventParser, backoff, isToken } from "../../dashboard/api.js";

/** An admin address: its open streams, and its requests. */
class Gateway {
  streams = 0;
  asked = [];
  token = null;

  fetch(path, { signal, headers }) {
    this.asked.push(path);
    for (const value of Object.values(headers)) if (/[^\x00-\xff]/.test(value)) throw new TypeError("no such field");
    if (this.token !== null && headers.authorization !== `Bearer ${this.token}`) return new Response("{}", { status: 401 });
    if (path !== "/api/events") return Response.json({});
    this.streams += 1;
    const gone = () => (this.streams -= 1);
    const body = new ReadableStream({
      start(out) {
        out.enqueue(new TextEncoder().encode('data: {"number": 1}\n\n'));
        signal.addEventListener("abort", () => (gone(), out.error(signal.reason)), { once: true });
      },
    });
    return new Response(body);
  }
}

let gateway;
beforeEach(() => {
  gateway = new Gateway();
  globalThis.document = new Stage();
  globalThis.sessionStorage = new Storage();
  globalThis.fetch = async (path, options) => gateway.fetch(path, options);
});

test("a tab that nobody looks at holds no connection, and goes on when somebody does", async (t) => {
  const states = [];
  const events = [];
  const end = new Api().follow("/api/events", { poll: "/api/sample", onEvent: (event) => events.push(event), onState: (state) => states.at(-1) !== state && states.push(state) });
  t.after(end);
  await until("an event", () => events.length === 1);
  assert.equal(gateway.streams, 1);
  document.look(false);
  await until("unseen", () => states.at(-1) === "unseen");
  assert.equal(gateway.streams, 0);
  document.look(true);
  await until("one more", () => events.length === 2);
  assert.deepEqual(states, ["live", "unseen", "live"]);
  end();
  await until("the end", () => gateway.streams === 0);
});

test("a tab that was opened in the background asks for nothing yet", async (t) => {
  document.hidden = true;
  const states = [];
  const end = new Api().follow("/api/events", { poll: "/api/sample", onEvent() {}, onState: (state) => states.push(state) });
  t.after(end);
  await until("unseen", () => states.length === 1);
  assert.deepEqual(gateway.asked, []);
  document.look(true);
  await until("live", () => states.at(-1) === "live");
  end();
});

test("what no token can be is forgotten, and asked for again", async () => {
  gateway.token = "sesame";
  const wrong = [];
  const answers = ["schlüssel–", " sesame\n"];
  const api = new Api({ askToken: async (wasWrong) => (wrong.push(wasWrong), answers.shift()) });
  sessionStorage.setItem("becalm-token", "–");
  assert.deepEqual(await api.get("/api/state"), {});
  assert.deepEqual(wrong, [false, false], "it never was a token");
  assert.equal(sessionStorage.getItem("becalm-token"), "sesame");
});

test("who closes the question, or breaks it, is asked again", async () => {
  gateway.token = "sesame";
  const answers = [() => null, () => Promise.reject(new Error("broken")), () => "wrong", () => "sesame"];
  const api = new Api({ askToken: async () => answers.shift()() });
  await assert.rejects(api.get("/api/state"), /broken/);
  assert.deepEqual(await api.get("/api/state"), {});
  assert.equal(answers.length, 0);
});

test("ten requests ask for the token once", async () => {
  gateway.token = "sesame";
  let times = 0;
  const api = new Api({ askToken: async () => (times++, "sesame") });
  await Promise.all(Array.from({ length: 10 }, () => api.get("/api/state")));
  assert.equal(times, 1);
});

test("a token is one word of visible ASCII", () => {
  for (const token of ["sesame", "a-b_c.~!"]) assert.ok(isToken(token), token);
  for (const token of ["", "a b", "ü", "a\n", "–"]) assert.ok(!isToken(token), token);
});

test("a wait is anything up to a bound that doubles, and no more than 15 s", () => {
  assert.deepEqual([0, 1, 2, 20].map((n) => backoff(n, () => 1)), [500, 1000, 2000, 15000]);
  assert.equal(backoff(5, () => 0), 0);
});

test("events come in pieces of any size", () => {
  const text = 'retry: 2000\n\ndata: {"a":\r\ndata: 1}\n\ndata:2\n\n';
  for (let size = 1; size < text.length; size++) {
    const seen = [];
    const parser = new EventParser((data) => seen.push(data));
    for (let i = 0; i < text.length; i += size) parser.push(text.slice(i, i + size));
    assert.deepEqual(seen, ['{"a":\n1}', "2"]);
  }
});
