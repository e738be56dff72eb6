// SPDX-License-Identifier: MIT
//
// Light, dark, or the system's theme. This browser keeps the choice.

import { attribute, text } from "./dom.js";

const THEMES = ["auto", "light", "dark"];

function useTheme(button, theme) {
  localStorage.setItem("becalm-theme", theme);
  attribute(document.documentElement, "data-theme", theme === "auto" ? null : theme);
  text(button, `Theme: ${theme}`);
  document.dispatchEvent(new Event("themechange"));
}

function themeNow() {
  const theme = localStorage.getItem("becalm-theme");
  return THEMES.includes(theme) ? theme : "auto";
}

/** Each press of the button takes the next theme. */
export function themed(button) {
  useTheme(button, themeNow());
  button.addEventListener("click", () => useTheme(button, THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length]));
}
