/** Starts the dashboard: first the pages of the host, then those of other modules. */
import { html } from "htm/preact";
import { render } from "preact";
import { opensAgain } from "./api.js";
import { App } from "./app.js";
import { hostSection } from "./host/section.js";
import { addSection } from "./sections.js";

addSection(hostSection);
const listed = document.querySelector('meta[name="extensions"]')?.getAttribute("content") ?? "[]";
// A module whose pages cannot be loaded does not affect the others.
await Promise.allSettled(JSON.parse(listed).map((/** @type {string} */ address) => import(address)));
// When this origin itself opens the document, the document contains the page key.
if (opensAgain) window.location.replace(window.location.pathname + window.location.search);
else render(html`<${App} />`, document.body);
