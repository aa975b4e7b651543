/**
 * The address of a page is the path below the dashboard's base. So every page can be linked to, and
 * the browser's history works.
 */
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { base } from "./api.js";

/** @typedef {{ path: string, query: URLSearchParams }} Place `path`: without slashes at its ends */

/** @returns {Place} */
function here() {
  const { pathname, search } = window.location;
  return { path: pathname.slice(base.length).replace(/^\/+|\/+$/g, ""), query: new URLSearchParams(search) };
}

const CHANGED = "modhost-place";

/**
 * Returns the address of a page.
 * @param {string} path
 * @param {Record<string, string | undefined>} [query]
 */
export function hrefOf(path, query = {}) {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value]],
  );
  const text = new URLSearchParams(given).toString();
  return `${base}/${path}${text === "" ? "" : `?${text}`}`;
}

/**
 * @param {string} href an address of this dashboard
 * @param {{ replace?: boolean }} [options] `replace`: replaces the current entry of
 * the history
 */
export function navigate(href, { replace = false } = {}) {
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  window.dispatchEvent(new Event(CHANGED));
}

export function useAddress() {
  const [address, set] = useState(here);
  useEffect(() => {
    const changed = () => set(here());
    window.addEventListener("popstate", changed);
    window.addEventListener(CHANGED, changed);
    return () => {
      window.removeEventListener("popstate", changed);
      window.removeEventListener(CHANGED, changed);
    };
  }, []);
  return address;
}

/**
 * Returns a value in the query of the page's address, and its setter. The value survives a reload,
 * and can be shared as a link.
 * @param {string} name
 * @param {string} [fallback]
 * @returns {[string, (value: string) => void]}
 */
export function useQuery(name, fallback = "") {
  const { path, query } = useAddress();
  const set = (/** @type {string} */ value) => {
    const all = Object.fromEntries(here().query);
    navigate(hrefOf(path, { ...all, [name]: value === fallback ? undefined : value }), { replace: true });
  };
  return [query.get(name) ?? fallback, set];
}

/**
 * A link to a page of the dashboard.
 * @param {{ to: string, query?: Record<string, string | undefined>, children?: any, [attribute:
 * string]: any }} props
 */
export function Link({ to, query, children, ...rest }) {
  const href = hrefOf(to, query);
  const go = (/** @type {MouseEvent} */ event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(href);
  };
  return html`<a href=${href} onClick=${go} ...${rest}>${children}</a>`;
}
