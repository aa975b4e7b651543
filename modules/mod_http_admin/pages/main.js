/** The dashboard: begins with the pages of the host, then those of other modules. */
import { html } from "htm/preact";
import { render } from "preact";
import { App } from "./app.js";
import { hostSection } from "./host/section.js";
import { addSection } from "./sections.js";

addSection(hostSection);
const listed = document.querySelector('meta[name="extensions"]')?.getAttribute("content") ?? "[]";
// One that cannot be loaded leaves the others as they are.
await Promise.allSettled(JSON.parse(listed).map((/** @type {string} */ address) => import(address)));
render(html`<${App} />`, document.body);
