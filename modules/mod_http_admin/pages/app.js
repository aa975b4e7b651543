/** The frame around pages: navigation, connection state and sign-in. */
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, pageKey, signIn, signOut } from "./api.js";
import { useAction, useApi } from "./data.js";
import { useConnection } from "./live.js";
import { Link, useAddress } from "./router.js";
import { pageAt, sections } from "./sections.js";
import { choose, themes, useTheme } from "./theme.js";
import { Toasts } from "./toasts.js";
import { Button, Empty, Page, Problem, TextField } from "./ui.js";

/**
 * Minimum time in milliseconds between reloads for a new key. Without it, a permanent problem would
 * reload the page in a loop.
 */
const RELOAD_PAUSE = 10_000;

export function App() {
  const [isSignedOut, setSignedOut] = useState(pageKey === "");
  useEffect(() => {
    const listener = (/** @type {any} */ { detail }) => {
      if (detail === "signed-out") setSignedOut(true);
      else if (performance.now() > RELOAD_PAUSE) window.location.reload();
    };
    window.addEventListener("modhost-page", listener);
    return () => window.removeEventListener("modhost-page", listener);
  }, []);
  return isSignedOut ? html`<${SignIn} />` : html`<${Frame} />`;
}

function Frame() {
  const { path } = useAddress();
  const [isOpen, setOpen] = useState(false);
  const found = pageAt(path === "" ? "overview" : path);
  useEffect(() => {
    setOpen(false);
    window.scrollTo(0, 0);
  }, [path]);
  useEffect(() => {
    document.addEventListener("keydown", toSearch);
    return () => document.removeEventListener("keydown", toSearch);
  }, []);
  return html`<a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <${Link} to="" class="brand" aria-label="modhost, overview">modhost<//>
      <${Connection} />
      <button type="button" class="menu" aria-expanded=${isOpen} aria-controls="nav" onClick=${() => setOpen(!isOpen)}>Menu</button>
    </header>
    <div class="frame">
      <nav id="nav" class=${isOpen ? "open" : ""} aria-label="Pages">
        ${sections.map(
          ({ title, pages }) => html`<section key=${title}><h2>${title}</h2><ul>
            ${pages.map(
              (page) => html`<li key=${page.path}>
                <${Link} to=${page.path === "overview" ? "" : page.path} aria-current=${found?.page === page ? "page" : undefined}>${page.title}<//>
              </li>`,
            )}
          </ul></section>`,
        )}
        <${Caller} />
      </nav>
      ${found === undefined ? html`<${Missing} path=${path} />` : html`<${Shown} key=${found.page.path} page=${found.page} rest=${found.rest} />`}
    </div>
    <${Toasts} />`;
}

/**
 * "/" moves the focus to the page's search field, unless the user is typing.
 * @param {KeyboardEvent} event
 */
function toSearch(event) {
  const { key, target } = event;
  const isTyped = target instanceof HTMLElement && target.matches("input, textarea, select");
  const search = document.querySelector("main input.search");
  if (key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyped || document.querySelector("dialog"))
    return;
  if (!(search instanceof HTMLElement)) return;
  event.preventDefault();
  search.focus();
}

/** @param {{ page: import("./sections.js").PageEntry, rest: string }} props */
function Shown({ page, rest }) {
  const [loaded, set] = useState(/** @type {{ view?: any, error?: Error }} */ ({}));
  const connection = useConnection();
  const wasLost = useRef(false);
  useEffect(() => {
    page.load().then(
      ({ default: view }) => set({ view }),
      (error) => set({ error }),
    );
  }, [page]);
  useEffect(() => {
    if (connection === "lost") wasLost.current = true;
    else if (connection === "connected" && wasLost.current && loaded.error !== undefined) window.location.reload();
  }, [connection, loaded.error]);
  if (loaded.error !== undefined && connection === "lost")
    return html`<${Page} title=${page.title}><${Problem} error=${new Error("The server does not respond. This page loads as soon as it does.")} /><//>`;
  if (loaded.error !== undefined) {
    const again = () => window.location.reload();
    return html`<${Page} title=${page.title}><${Problem} error=${new Error("This page could not be loaded.")} retry=${again} /><//>`;
  }
  if (loaded.view === undefined) return html`<main id="main"><p class="loading" role="status">Loading…</p></main>`;
  return html`<${loaded.view} rest=${rest} />`;
}

/** @param {{ path: string }} props */
const Missing = ({ path }) => html`<${Page} title="Not found">
  <${Empty} title="There is no such page."><p>The dashboard has no page at <code>${path}</code>. Its module may have been unloaded.</p><//>
<//>`;

const words = { connecting: "Connecting…", connected: "Connected", lost: "Not connected. Trying again…" };

function Connection() {
  const state = useConnection();
  const [wasLost, setLost] = useState(false);
  const [isBack, setBack] = useState(false);
  useEffect(() => {
    if (state === "lost") setLost(true);
    if (state !== "connected" || !wasLost) return undefined;
    setLost(false);
    setBack(true);
    const timer = setTimeout(() => setBack(false), 4000);
    return () => clearTimeout(timer);
  }, [state]);
  return html`<p class=${`connection ${state}`} role="status"><span class="dot" aria-hidden="true"></span>${isBack ? "Connected again" : words[state]}</p>`;
}

function Caller() {
  const { data } = useApi("/whoami", { topic: "" });
  const { theme } = useTheme();
  const isSession = data?.by.startsWith("token ");
  const leave = async () => {
    await signOut();
    window.location.reload();
  };
  return html`<footer>
    ${data && html`<p title=${`Changes are recorded as made by ${data.by}`}>${isSession ? data.by : "This machine"}${data.scopes.includes("admin") ? "" : " (read only)"}</p>`}
    ${isSession && html`<${Button} kind="quiet" onClick=${leave}>Sign out<//>`}
    <select aria-label="Colours" value=${theme} onChange=${(/** @type {any} */ event) => choose(event.currentTarget.value)}>
      ${themes.map(([value, text]) => html`<option value=${value} selected=${value === theme}>${text}</option>`)}
    </select>
  </footer>`;
}

function SignIn() {
  const [token, setToken] = useState("");
  const form = useRef(null);
  const enter = useAction(async () => {
    await signIn(token.trim());
    window.location.reload();
  });
  const isPlain = window.location.protocol === "http:" && !window.isSecureContext;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void enter.start();
  };
  const error =
    enter.error instanceof ApiError && enter.error.code === "unauthorized"
      ? new Error("This token is unknown, was revoked or has expired.")
      : enter.error;
  return html`<div class="sign-in"><${Page} title="Sign in">
    ${
      isPlain
        ? html`<${Empty} title="Others can read this connection."><p>Open the dashboard with <code>https://</code>, or on the machine itself at <code>localhost</code>, for example through an SSH tunnel.</p><//>`
        : html`<form ref=${form} onSubmit=${submit}>
          <${TextField} label="Token" type="password" value=${token} onInput=${setToken} autocomplete="current-password" autofocus
            hint=${html`Create one on the server with <code>modhost token new NAME admin</code>`} />
          <${Problem} error=${error} />
          <${Button} type="submit" kind="primary" isBusy=${enter.isBusy} disabled=${token.trim() === ""}>Sign in<//>
        </form>`
    }
  <//></div>`;
}
