// SPDX-License-Identifier: MIT
//
// The gateway's admin address: requests, orders, and the stream of events. The token, where the gateway needs one, is kept
// only in this tab's sessionStorage. Reconnecting waits with full jitter, as the gateway itself would.

const TOKEN = "becalm-token";
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;
const SILENCE = 8000; // the gateway sends an event every second
const POLL = 2000;
const PATIENCE = 10000; // for an answer

/** An error of the gateway, or of the connection to it. `status` 0: there was no answer. */
export class ApiError extends Error {
  constructor(status, detail, body) {
    super(detail);
    this.status = status;
    this.body = body;
  }
}

/** Can a header field of HTTP hold this token? The gateway's tokens are one word of visible ASCII. */
export function isToken(text) {
  return /^[!-~]+$/.test(text);
}

/** Waits until this tab is visible, or `signal` ends the wait. */
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
  /** askToken(wasWrong): a promise of the token that the user typed; null: the user typed none. */
  constructor({ askToken } = {}) {
    this.askToken = askToken;
    this.asking = null;
  }

  /** Sends a request, and asks the user for the token where the gateway wants one. `signal` ends the request. */
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

  // A token that a header can't hold is forgotten: every request with it would fail in the browser, and the user would not be asked again.
  token() {
    const token = sessionStorage.getItem(TOKEN);
    if (token === null || isToken(token)) return token;
    sessionStorage.removeItem(TOKEN);
    return null;
  }

  // All requests without a token wait for the same dialog, so a page of ten requests asks once. Where the user gives no
  // token, the next request asks again.
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
      // a body that is not JSON adds nothing to the status
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
   * Follows a stream of server-sent events for ever, while the tab is visible: a browser has six connections to a gateway
   * for all tabs together, and a stream holds one. Where the stream fails, asks `poll` every two seconds instead, and tries
   * the stream again now and then. onEvent(data); onState("live" | "polling" | "lost" | "unseen", sentence). Returns a
   * function that stops following.
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
        // the stream is opened again, whatever ended it
      }
      if (signal.aborted) return;
      if (document.hidden) continue;
      const polled = await this.pollUntil(Date.now() + backoff(failures), poll, { onEvent, onState, signal });
      if (!polled) onState("lost", "The gateway does not answer; trying again.");
      failures += 1;
    }
  }

  // Polls at least once, so that the page is alive where streams are blocked. True: the last poll had an answer.
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

/** Parses server-sent events from text in pieces of any size; calls onData with each event's data. */
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
