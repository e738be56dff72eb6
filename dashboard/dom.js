// SPDX-License-Identifier: MIT
//
// Elements. Text is only inserted as text, so the name of a service can't become markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "line", "text", "g", "title", "circle"]);

/** h("p", {class: "note", onclick: f}, "text", child, [more]): an element. null, undefined and false are left out. */
export function h(tag, attributes = {}, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  add(node, children);
  return node;
}

function set(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(node.dataset, value);
  else node.setAttribute(name, value === true ? "" : String(value));
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces the content of `node`. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

/**
 * Replaces the children of `node` by `wanted`, and does not move children that are in the right place: an element with the
 * keyboard focus keeps it. If that element is removed, the focus goes to the element in its place.
 */
export function arrange(node, wanted) {
  const focused = document.activeElement;
  const at = [...node.children].findIndex((child) => child.contains(focused));
  const kept = new Set(wanted);
  for (const child of [...node.children]) if (!kept.has(child)) child.remove();
  let place = node.firstElementChild;
  for (const child of wanted) {
    if (child === place) place = place.nextElementSibling;
    else node.insertBefore(child, place);
  }
  if (at < 0 || focused === document.activeElement) return;
  const heir = node.contains(focused) ? focused : node.children[Math.min(at, node.children.length - 1)]?.querySelector("a, button");
  heir?.focus({ preventScroll: true });
}

/** Sets the text of a node only where it differs, so that an idle page costs nothing and a selection survives. */
export function text(node, value) {
  const wanted = String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** The same for an attribute; null removes it. */
export function attribute(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, String(value));
  }
}

/** A table that may be wider than the page scrolls by itself, for the keyboard too. `data-more` marks it while columns at its right are hidden. */
export function wide(label, table) {
  const node = h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `${label}, as a table` }, table);
  const look = () => attribute(node, "data-more", node.scrollWidth - node.clientWidth - node.scrollLeft > 8 ? "" : null);
  const sizes = new ResizeObserver(look);
  sizes.observe(node);
  sizes.observe(table);
  node.addEventListener("scroll", look, { passive: true });
  return node;
}

/** Announces a change to users of screen readers. `#announce` is in the page from its start. */
export function announce(sentence) {
  const place = document.getElementById("announce");
  if (place) text(place, sentence);
}
