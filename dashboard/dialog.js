// SPDX-License-Identifier: MIT
//
// Questions to the person: the browser's own dialogs, which keep the keyboard inside and give it back afterwards.

import { h } from "./dom.js";

function ask({ title, content, yes, danger, closable = true, answer }) {
  return new Promise((done) => {
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      content,
      h(
        "div",
        { class: "buttons" },
        closable && h("button", { type: "submit", value: "no", class: "quiet" }, "Cancel"),
        h("button", { type: "submit", value: "yes", class: danger ? "danger" : "primary" }, yes),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    dialog.addEventListener("cancel", (event) => closable || event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue === "yes" ? answer() : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** True: the person is sure. */
export async function confirmed({ title, sentences, yes, danger = true }) {
  const content = sentences.map((sentence) => h("p", {}, sentence));
  return (await ask({ title, content, yes, danger, answer: () => true })) === true;
}

/**
 * The token of adminTokenFile. The user can't skip it: a browser closes a dialog at the second Escape, so the dialog is opened again. Text that can't be a token is refused in the dialog.
 */
export async function tokenAsked(wasWrong) {
  let token = null;
  while (token === null) {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true, pattern: "\\s*[!-~]+\\s*", title: "A token is one word of visible ASCII characters.", "aria-describedby": wasWrong ? "token-wrong" : null });
    const content = [
      h("p", {}, "This gateway's admin address asks for the token of its adminTokenFile. It is kept until this tab is closed."),
      wasWrong && h("p", { id: "token-wrong", class: "bad", role: "alert" }, "✗ That is not the token."),
      h("p", {}, h("label", { for: "token" }, "Token"), " ", field),
    ];
    token = await ask({ title: "Token", content, yes: "Use it", closable: false, answer: () => field.value });
  }
  return token;
}
