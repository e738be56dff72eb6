// SPDX-License-Identifier: MIT
//
// Is it a retry storm? The three questions that detect one, with their answers; the same that `becalm rules prometheus` asks.

import { attribute, h, text } from "./dom.js";
import { NONE, number, percent, times } from "./format.js";

const QUESTIONS = [
  { key: "retryShare", ask: "Retries among all attempts, 5 minutes", most: 0.5, format: percent },
  { key: "growth", ask: "Requests in the last minute against 5 minutes ago", most: 3, format: times, absent: "not known yet" },
  { key: "inFlightMost", ask: "Most attempts at once, 5 minutes", most: 100, format: number },
];

const WORDS = {
  storm: ["▲", "Retry storm", "within the last 5 minutes: retries were a large part of the load. The services below that refuse or fail are the cause."],
  watch: ["◇", "One sign of a storm", "One sign alone is not a storm: a busy service may show it all the time."],
  calm: ["●", "No sign of a storm", ""],
};

export class StormPanel {
  constructor() {
    this.sign = h("span", { class: "sign", "aria-hidden": "true" });
    this.word = h("strong", {});
    this.sentence = h("span", { class: "note" });
    this.answers = QUESTIONS.map(() => ({ value: h("strong", {}, NONE), node: null, verdict: h("span", {}) }));
    this.node = h(
      "section",
      { class: "storm", "aria-label": "Storm" },
      h("p", { class: "storm-word" }, this.sign, " ", this.word, " ", this.sentence),
      h("ul", {}, QUESTIONS.map((question, i) => {
        const answer = this.answers[i];
        answer.node = h("li", { "data-sign": question.key }, h("span", { class: "tile-label" }, question.ask), answer.value, h("span", { class: "note" }, `a sign above ${question.format(question.most)} `, answer.verdict));
        return answer.node;
      })),
    );
  }

  update(storm, word) {
    const [sign, said, sentence] = WORDS[word];
    attribute(this.node, "data-storm", word);
    text(this.sign, sign);
    text(this.word, said);
    text(this.sentence, sentence);
    QUESTIONS.forEach((question, i) => {
      const value = storm[question.key];
      text(this.answers[i].value, value === undefined ? (question.absent ?? NONE) : question.format(value));
      const is = storm.signs.includes(question.key);
      attribute(this.answers[i].node, "data-is", is ? "yes" : null);
      text(this.answers[i].verdict, is ? "▲ a sign" : "");
    });
  }
}
