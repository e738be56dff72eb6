// SPDX-License-Identifier: MIT
//
// The view that the address of the page names.

// The address may have been typed by hand: text with bad escapes is taken as it is.
function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** "#/service/a%20b?endpoint=x" is {page: "service", name: "a b", query}. */
export function placeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/");
  return { page: first || "services", name: unescaped(rest.join("/")), query: new URLSearchParams(query) };
}
