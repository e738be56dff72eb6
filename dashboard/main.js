// SPDX-License-Identifier: MIT
//
// The page: the view that the address names, the link to the gateway, and notices about the whole gateway.

import { Api } from "./api.js";
import { tokenAsked } from "./dialog.js";
import { announce, attribute, fill, h, text } from "./dom.js";
import { ago, duration } from "./format.js";
import { Live } from "./live.js";
import { placeOf } from "./place.js";
import { ConnectionsView, certificateNotices } from "./connections.js";
import { DecisionsView } from "./decisions.js";
import { FleetView } from "./fleet.js";
import { PolicyView } from "./policy.js";
import { ServiceView } from "./service.js";
import { ServicesView } from "./services.js";
import { themed } from "./theme.js";

const LINKS = {
  live: ["●", "live"],
  polling: ["◐", "polling"],
  lost: ["✗", "no answer"],
  locked: ["△", "token needed"],
  unseen: ["○", "paused"],
};

const page = {
  api: new Api({ askToken }),
  live: new Live(),
  view: null,
};
let state = null; // of the gateway, without its services

/* ---- views ---- */

function viewOf(place) {
  if (place.page === "service") return new ServiceView(page, place.name, place.query);
  if (place.page === "decisions") return new DecisionsView(page, place.query);
  if (place.page === "fleet") return new FleetView(page);
  if (place.page === "connections") return new ConnectionsView(page);
  if (place.page === "policy") return new PolicyView(page, place.query);
  return new ServicesView(page);
}

function show() {
  if (location.hash === "#main") return; // the skip link
  const place = placeOf(location.hash);
  const before = page.view;
  if (before?.stay?.(place)) return;
  before?.end();
  page.view = viewOf(place);
  const main = document.getElementById("main");
  fill(main, page.view.node);
  page.view.update();
  showNotices();
  document.title = `${page.view.title} · Becalm`;
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    const here = link.dataset.page === place.page || (link.dataset.page === "services" && place.page === "service");
    attribute(link, "aria-current", here ? "page" : null);
  }
  scrollTo(0, 0);
  if (before !== null) main.focus({ preventScroll: true }); // a screen reader, or the next Tab, begins at the new view
}

/* ---- the gateway ---- */

function showAbout() {
  if (state === null) return;
  document.querySelector('nav a[data-page="fleet"]').hidden = state.stores === undefined; // no shared budget
  const said = [
    `${state.policy}`,
    `role ${state.role}`,
    `${state.workers} ${state.workers === 1 ? "worker" : "workers"}`,
    `up ${duration(Date.now() - new Date(state.started).getTime())}`,
    `policy of ${ago(state.reload.lastSuccess)}`,
    `version ${state.version}`,
  ];
  text(document.getElementById("about"), said.join(" · "));
}

function showNotices() {
  const notices = [];
  if (page.live.latest?.draining) notices.push(h("p", { class: "notice" }, "△ The gateway is shutting down: it finishes the requests in progress."));
  for (const fault of page.live.latest?.faults ?? []) {
    const where = fault.endpoint ? `${fault.service} ${fault.endpoint}` : fault.service;
    const ends = duration(Math.ceil(fault.endsInMs / 1000) * 1000);
    notices.push(h("p", { class: "notice" }, `△ An injected fault is active: ${fault.name} (${fault.fault} of ${where}, towards ${fault.towards}). It ends in ${ends}, or with becalm fault clear.`));
  }
  for (const { weight, said } of certificateNotices(state?.tls, Date.now())) {
    notices.push(h("p", { class: weight === "critical" ? "notice bad" : "notice" }, said, " ", h("a", { href: "#/connections" }, "Connections")));
  }
  if (state !== null && !state.reload.successful && !page.view?.tellsReload) {
    const why = state.reload.why ?? "see the gateway's log";
    notices.push(h("p", { class: "notice bad" }, "✗ The latest reload failed; the earlier policy stays in force: ", h("code", {}, why), " ", h("a", { href: "#/policy" }, "Policy")));
  }
  const place = document.getElementById("notices");
  const said = notices.map((each) => each.textContent).join();
  if (place.dataset.said !== said) {
    place.dataset.said = said;
    fill(place, notices);
  }
}

async function askState() {
  try {
    state = await page.api.get("/api/state?service=");
    showAbout();
    showNotices();
  } catch {
    // the link in the header shows it
  }
}
page.askState = askState;

function showLink(word, sentence) {
  const link = document.getElementById("link");
  if (link.dataset.link === word) return;
  link.dataset.link = word;
  text(link.querySelector(".sign"), LINKS[word][0]);
  text(document.getElementById("link-word"), LINKS[word][1]);
  attribute(link, "title", sentence || null);
  document.body.classList.toggle("lost", word === "lost");
  announce(word === "live" ? "Live." : sentence);
}

function askToken(wasWrong) {
  showLink("locked", "The gateway asks for its token.");
  return tokenAsked(wasWrong);
}

async function askBefore() {
  try {
    page.live.noteBefore(await page.api.get("/api/history"));
    page.view.update();
  } catch {
    // without a history, the sparklines begin now
  }
}

// After a break, the gateway's history fills the gap.
let isFollowed = false;
function linked(word, sentence) {
  const follows = word === "live" || word === "polling";
  showLink(word, sentence);
  if (follows && !isFollowed) {
    askBefore();
    page.view?.resumed?.();
  }
  isFollowed = follows;
}

let known = null; // the process and the policy of the latest event
function noted(event) {
  page.live.note(event);
  const now = `${event.id} ${event.started} ${event.reloads}`;
  if (known !== now) {
    known = now;
    askState();
    page.view?.reloaded?.();
  }
  showAbout();
  showNotices();
  page.view?.update();
}

themed(document.getElementById("theme"));
addEventListener("hashchange", show);
show();
page.api.follow("/api/events", { poll: "/api/sample", onEvent: noted, onState: linked });
