// SPDX-License-Identifier: MIT
//
// Connections to clients and hosts: protocols, TLS handshakes, HTTP/2 connections that the gateway closed, and when certificates
// expire.

import { fill, h, text, wide } from "./dom.js";
import { NONE, count, duration, percent, words } from "./format.js";

const REFRESH_MS = 5000;
const SOON_MS = 7 * 24 * 3600 * 1000; // as the alert CertificateExpires
const PROTOCOLS = { h1: "HTTP/1", h2: "HTTP/2", grpc: "gRPC" };

/** The protocols of each service with one side, since the start: the sum of its endpoints. */
export function spokenOf(service, side) {
  const sums = { h1: 0, h2: 0, grpc: 0 };
  for (const { protocols } of service.endpoints) for (const each in sums) sums[each] += protocols?.[side]?.[each] ?? 0;
  return sums;
}

/** "HTTP/2 90 %, gRPC 10 %". */
export function spokenSaid(sums) {
  const all = Object.values(sums).reduce((sum, each) => sum + each, 0);
  if (all === 0) return NONE;
  return Object.entries(PROTOCOLS)
    .filter(([key]) => sums[key] > 0)
    .map(([key, label]) => `${label} ${percent(sums[key] / all)}`)
    .join(", ");
}

/** Handshakes of both sides, by result. A result that never happened is left out, except for the two good ones. */
export function handshakesOf(tls) {
  const results = new Map();
  for (const { side, result, count: n } of tls?.handshakes ?? []) {
    const row = results.get(result) ?? { result, clients: null, hosts: null };
    row[side] = n;
    results.set(result, row);
  }
  return [...results.values()].filter((row) => ["full", "resumed"].includes(row.result) || row.clients > 0 || row.hosts > 0);
}

/** The state of a certificate; `now` in ms since 1970. */
export function certificateOf({ file, expires }, now) {
  const left = expires * 1000 - now;
  if (left <= 0) return { file, weight: "critical", said: `✗ expired ${duration(-left)} ago` };
  if (left <= SOON_MS) return { file, weight: "warning", said: `△ expires in ${duration(left)}` };
  return { file, weight: "fine", said: `● valid for ${duration(left)}` };
}

/** Sentences about certificates that have expired or expire soon. */
export function certificateNotices(tls, now) {
  return (tls?.certificates ?? [])
    .map((each) => certificateOf(each, now))
    .filter(({ weight }) => weight !== "fine")
    .map(({ file, weight, said }) => ({ weight, said: `${said.slice(0, 1)} The certificate ${file} ${said.slice(2)}.` }));
}

function table(labels, body) {
  return h("table", {}, h("thead", {}, h("tr", {}, labels.map((label) => h("th", { scope: "col" }, label)))), body);
}

function section(id, title, ...inside) {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), inside);
}

export class ConnectionsView {
  title = "Connections";

  constructor(page) {
    this.page = page;
    this.about = h("p", { class: "note", role: "status" });
    this.spoken = h("tbody");
    this.handshakes = h("tbody");
    this.ended = h("tbody");
    this.certificates = h("tbody");
    this.tls = h(
      "div",
      { class: "two", hidden: true },
      section("handshakes-title", "Handshakes", wide("Handshakes", table(["Result", "With clients", "With hosts"], this.handshakes))),
      section("certificates-title", "Certificates", wide("Certificates", table(["File", "State", "Expires"], this.certificates))),
    );
    this.noTls = h("p", { class: "note", hidden: true }, "This policy has no TLS.");
    this.node = h(
      "div",
      {},
      h("h1", {}, "Connections"),
      this.about,
      section("spoken-title", "Protocols", h("p", { class: "note" }, "Requests of clients, and attempts to hosts, since the start."), wide("Protocols", table(["Service", "Protocols of clients", "Requests", "Protocols to hosts", "Attempts"], this.spoken))),
      this.tls,
      this.noTls,
      section("ended-title", "HTTP/2 connections that the gateway closed", h("p", { class: "note" }, "The peer flooded the gateway or violated HTTP/2. goaway: the connection was idle for too long, or the gateway shuts down."), wide("Closed", table(["Why", "Of clients", "Of hosts"], this.ended))),
    );
    this.timer = setInterval(() => this.ask(), REFRESH_MS);
    this.ask();
  }

  async ask() {
    try {
      this.show(await this.page.api.get("/api/state"));
    } catch (problem) {
      text(this.about, problem.message);
    }
  }

  show(state) {
    const now = new Date(state.time).getTime();
    text(this.about, `${count(state.connections)} open now, ${count(state.accepted)} since the start.`);
    fill(this.spoken, state.services.map((service) => {
      const [clients, hosts] = [spokenOf(service, "clients"), spokenOf(service, "hosts")];
      const sum = (sums) => count(sums.h1 + sums.h2 + sums.grpc);
      return h("tr", { "data-service": service.name }, h("th", { scope: "row" }, h("a", { href: `#/service/${encodeURIComponent(service.name)}` }, service.name)), [spokenSaid(clients), sum(clients), spokenSaid(hosts), sum(hosts)].map((each) => h("td", {}, each)));
    }));
    this.tls.hidden = state.tls === undefined;
    this.noTls.hidden = state.tls !== undefined;
    fill(this.handshakes, handshakesOf(state.tls).map((row) => h("tr", { "data-result": row.result }, h("th", { scope: "row" }, words(row.result)), h("td", {}, row.clients === null ? NONE : count(row.clients)), h("td", {}, row.hosts === null ? NONE : count(row.hosts)))));
    fill(this.certificates, (state.tls?.certificates ?? []).map((each) => {
      const { file, weight, said } = certificateOf(each, now);
      return h("tr", { "data-weight": weight }, h("th", { scope: "row" }, h("code", {}, file)), h("td", { class: "state" }, said), h("td", {}, new Date(each.expires * 1000).toISOString().slice(0, 16).replace("T", " ")));
    }));
    const { clientsEnded = {}, hostsEnded = {} } = state.http2 ?? {};
    const whys = [...new Set([...Object.keys(clientsEnded), ...Object.keys(hostsEnded)])];
    fill(this.ended, whys.length === 0 ? h("tr", {}, h("td", { colspan: 3 }, "none")) : whys.map((why) => h("tr", { "data-why": why }, h("th", { scope: "row" }, words(why)), h("td", {}, count(clientsEnded[why] ?? 0)), h("td", {}, count(hostsEnded[why] ?? 0)))));
  }

  reloaded() {
    this.ask();
  }

  update() {}

  end() {
    clearInterval(this.timer);
  }
}
