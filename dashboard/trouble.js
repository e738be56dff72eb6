// SPDX-License-Identifier: MIT
//
// The trouble of a service, in two words: the table of `becalm top` (src/top/trouble.h), word for word, the worst first.
// The thresholds are those of the alerts (docs/alerts.md), over ten seconds. A test compares the two tables.

const above = (part, percent, whole) => part * 100 > whole * percent;
const has = (state) => ({ breakers }) => breakers.includes(state);

/** Each looks at {sum, refused, breakers, overloaded, hosts, usable, ejected, unhealthy}; `sum` is of the last seconds, see live.js. */
export const TROUBLES = [
  { weight: "critical", word: "forced open", sign: "■", sentence: "an operator has forced a breaker open: it refuses all calls", is: has("FORCED_OPEN") },
  { weight: "critical", word: "breaker open", sign: "■", sentence: "a breaker refuses calls until its next probes succeed", is: has("OPEN") },
  { weight: "critical", word: "no usable host", sign: "✗", sentence: "every host is ejected, unhealthy, unresolved or sent Retry-After", is: ({ hosts, usable }) => hosts > 0 && usable === 0 },
  { weight: "critical", word: "retry storm", sign: "▲", sentence: "more than half of the attempts are retries", is: ({ sum }) => above(sum.retries, 50, sentOf(sum)) },
  { weight: "critical", word: "failing", sign: "▲", sentence: "more than 5 % of the calls fail", is: ({ sum }) => above(sum.failed, 5, callsOf(sum)) },
  { weight: "critical", word: "refusing", sign: "▲", sentence: "more than 5 % of the calls are refused before an attempt", is: ({ sum }) => above(sum.shed, 5, callsOf(sum)) },
  { weight: "warning", word: "half open", sign: "◧", sentence: "a breaker lets a few probes through", is: has("HALF_OPEN") },
  { weight: "warning", word: "budget empty", sign: "△", sentence: "more than half of the retries due could not be paid for", is: ({ sum, refused }) => above(sum.budgetEmpty, 50, sum.retries + refused) },
  { weight: "warning", word: "many retries", sign: "△", sentence: "more than 30 % of the attempts are retries", is: ({ sum }) => above(sum.retries, 30, sentOf(sum)) },
  { weight: "warning", word: "overloaded", sign: "△", sentence: "more calls wait in the gate than the service serves", is: ({ overloaded }) => overloaded },
  { weight: "warning", word: "hosts failing", sign: "△", sentence: "too many hosts fail, so calls still go to failing ones", is: (seen) => (seen.ejected > 0 && areIgnored(seen)) || allFail(seen) },
  { weight: "warning", word: "host ejected", sign: "△", sentence: "a host gets no calls because it fails or is slow", is: (seen) => seen.ejected > 0 && !areIgnored(seen) },
  { weight: "warning", word: "host unhealthy", sign: "△", sentence: "a host gets no calls because it fails its health checks", is: (seen) => seen.unhealthy > 0 && !allFail(seen) },
  { weight: "fine", word: "saved by retries", sign: "◐", sentence: "more than 5 % of the calls fail at first and succeed after retries", is: ({ sum }) => above(sum.afterRetry, 5, callsOf(sum)) },
];

const FINE = { weight: "fine", word: "fine", sign: "●", sentence: "no trouble", rank: TROUBLES.length };
const IDLE = { weight: "fine", word: "idle", sign: "○", sentence: "no requests", rank: TROUBLES.length };

/** Too many hosts fail, so their ejections are ignored. */
export function areIgnored({ hosts, usable, ejected }) {
  return usable + ejected > hosts;
}

/** All hosts fail their health checks, which are ignored then. */
export function allFail({ hosts, unhealthy }) {
  return unhealthy > 0 && unhealthy === hosts;
}

/** Calls that ended. */
export function callsOf(sum) {
  return sum.firstAttempt + sum.afterRetry + sum.failed;
}

/** Attempts that were sent: the first of each call that was not refused, retries and hedges. */
export function sentOf(sum) {
  return sum.retries + sum.hedges + Math.max(0, callsOf(sum) - sum.shed);
}

/** The worst trouble, with its `rank`: lists are sorted by it. */
export function troubleOf(seen) {
  const rank = TROUBLES.findIndex((trouble) => trouble.is(seen));
  if (rank >= 0) return { ...TROUBLES[rank], rank };
  return seen.sum.arrivals > 0 ? FINE : IDLE;
}

export function isTrouble(trouble) {
  return trouble.weight !== "fine";
}
