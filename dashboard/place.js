// SPDX-License-Identifier: MIT
//
// Which view the address names.

// Whoever typed the address may have typed anything: what is badly escaped stands for itself.
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
