// SPDX-License-Identifier: MIT
//
// The gateway's admin address: questions, orders, and the stream of events. The token, where one is asked for, lives in
// this tab's sessionStorage and nowhere else. Reconnecting waits with full jitter, as the gateway itself would.

const TOKEN = "becalm-token";
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;
const SILENCE = 8000; // the gateway sends something every second
const POLL = 2000;
const PATIENCE = 10000; // for an answer

/** What the gateway, or the way to it, answered instead of what was asked. `status` 0: nothing came back. */
export class ApiError extends Error {
  constructor(status, detail, body) {
    super(detail);
    this.status = status;
    this.body = body;
  }
}

/** Whether a field of HTTP can hold it: the gateway's tokens are one word of visible ASCII. */
export function isToken(text) {
  return /^[!-~]+$/.test(text);
}

/** Until somebody looks at this tab, or `signal` ends the wait. */
function seen(signal) {
  return new Promise((done) => {
    if (!document.hidden || signal.aborted) return done();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}

const sleep = (milliseconds, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/** How long to wait before try number n (from 0): anything up to a bound that doubles. */
export function backoff(n, random = Math.random) {
  return random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** n);
}

export class Api {
  /** askToken(wasWrong): a promise of what the person typed; null: nothing. */
  constructor({ askToken } = {}) {
    this.askToken = askToken;
    this.asking = null;
  }

  /** Asks, and asks the person for the token where it is missing. `signal` ends it; a stream gives one that it ends itself. */
  async fetch(path, { patience = PATIENCE, ...options } = {}) {
    for (;;) {
      const late = patience === null ? [] : [AbortSignal.timeout(patience)];
      const signal = AbortSignal.any([...late, ...(options.signal ? [options.signal] : [])]);
      const token = this.token();
      const headers = { ...options.headers };
      if (token) headers.authorization = `Bearer ${token}`;
      let answer;
      try {
        answer = await fetch(path, { ...options, headers, signal, cache: "no-store" });
      } catch (problem) {
        if (options.signal?.aborted) throw problem;
        throw new ApiError(0, "The gateway does not answer.");
      }
      if (answer.status !== 401 || !this.askToken) return answer;
      await this.tokenAsked(token);
    }
  }

  // What can't be sent is forgotten: every request with it would fail before it left, and nobody would be asked again.
  token() {
    const token = sessionStorage.getItem(TOKEN);
    if (token === null || isToken(token)) return token;
    sessionStorage.removeItem(TOKEN);
    return null;
  }

  // Whoever finds the token missing waits for the same answer: a page of ten requests asks once. Who gives none is asked
  // again by the next request.
  async tokenAsked(tried) {
    if (this.token() !== tried) return;
    this.asking ??= this.askToken(tried !== null)
      .then((token) => token !== null && sessionStorage.setItem(TOKEN, token.trim()))
      .finally(() => (this.asking = null));
    await this.asking;
  }

  async json(path, options) {
    const answer = await this.fetch(path, options);
    let body = null;
    try {
      body = await answer.json();
    } catch {
      // a body that is no JSON has nothing to add to the status
    }
    if (!answer.ok) throw new ApiError(answer.status, body?.detail ?? `The gateway answered ${answer.status}.`, body);
    return body;
  }

  get(path, options) {
    return this.json(path, options);
  }

  post(path, body = {}) {
    return this.json(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  /**
   * Follows a stream of server-sent events for ever, while somebody looks: a browser has six connections to a gateway for
   * all tabs together, and a stream holds one. Where it can't be had, asks `poll` every two seconds instead, and tries the
   * stream again now and then. onEvent(data); onState("live" | "polling" | "lost" | "unseen", sentence). Returns a function
   * that ends it.
   */
  follow(path, { poll, onEvent, onState }) {
    const end = new AbortController();
    this.followOn(path, { poll, onEvent, onState, signal: end.signal });
    return () => end.abort();
  }

  async followOn(path, { poll, onEvent, onState, signal }) {
    let failures = 0;
    while (!signal.aborted) {
      if (document.hidden) {
        onState("unseen", "");
        await seen(signal);
        continue;
      }
      try {
        await this.stream(path, signal, (data) => {
          failures = 0;
          onState("live", "");
          onEvent(data);
        });
      } catch {
        // how it ended does not matter: it is tried again
      }
      if (signal.aborted) return;
      if (document.hidden) continue;
      const polled = await this.pollUntil(Date.now() + backoff(failures), poll, { onEvent, onState, signal });
      if (!polled) onState("lost", "The gateway does not answer; trying again.");
      failures += 1;
    }
  }

  // At least once, so that the page is alive where streams are blocked. True: the last one had an answer.
  async pollUntil(until, poll, { onEvent, onState, signal }) {
    let well = false;
    do {
      try {
        onEvent(await this.get(poll, { signal }));
        onState("polling", "No event stream; asking every two seconds.");
        well = true;
      } catch {
        well = false;
      }
      await sleep(well ? POLL : Math.max(until - Date.now(), FIRST_WAIT), signal);
    } while (Date.now() < until && !signal.aborted && !document.hidden);
    return well;
  }

  async stream(path, signal, onEvent) {
    const own = new AbortController();
    const hidden = () => document.hidden && own.abort();
    signal.addEventListener("abort", () => own.abort(), { once: true });
    document.addEventListener("visibilitychange", hidden);
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => own.abort(), SILENCE);
    };
    try {
      heard();
      const answer = await this.fetch(path, { signal: own.signal, patience: null, headers: { accept: "text/event-stream" } });
      if (!answer.ok) throw new ApiError(answer.status, "no stream");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser((data) => onEvent(JSON.parse(data)));
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard();
        parser.push(value);
      }
    } finally {
      document.removeEventListener("visibilitychange", hidden);
      clearTimeout(timer);
      own.abort();
    }
  }
}

/** The text of a stream of server-sent events, in pieces of any size; onData for each event's data. */
export class EventParser {
  constructor(onData) {
    this.onData = onData;
    this.rest = "";
    this.data = [];
  }

  push(piece) {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line.replace(/\r$/, ""));
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.onData(this.data.join("\n"));
      this.data = [];
    } else if (line.startsWith("data:")) {
      this.data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    }
  }
}
