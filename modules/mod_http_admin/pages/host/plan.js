/** A plan: the effect of a changed configuration on the server. */
import { html } from "htm/preact";
import { Badge } from "modhost/admin";

/** @type {Record<string, string>} */
const actions = {
  load: "is loaded",
  unload: "is unloaded",
  exchange: "is replaced by a new instance",
  tell: "is notified and keeps running",
  retry: "is tried again",
};

/** @param {{ plan: any }} props */
export function Plan({ plan }) {
  if (plan.isEmpty) return html`<p>Nothing differs from the current configuration.</p>`;
  const { options, permissions, installed, hosts, modules, ports, certificates, waiting } = plan;
  const shown = (/** @type {string | undefined} */ value) =>
    value === undefined ? "not set" : html`<code>${value}</code>`;
  const at = (/** @type {string} */ host) => (host === "*" ? "" : ` on ${host}`);
  return html`<ul class="plain plan">
    ${installed.map((/** @type {any} */ { module, from, to }) => html`<li>${module} ${from === undefined ? html`<code>${to}</code> is installed` : to === undefined ? html`<code>${from}</code> is removed` : html`<code>${from}</code> → <code>${to}</code>`}</li>`)}
    ${options.map((/** @type {any} */ each) => html`<li><code>${each.name}</code>${at(each.host)}: ${shown(each.from)} → ${shown(each.to)} ${each.applies === "start" && html`<${Badge} tone="warn">at the next start<//>`}</li>`)}
    ${permissions.map(
      (/** @type {any} */ { module, added, removed }) =>
        html`${added.map((/** @type {string} */ text) => html`<li><${Badge} tone="warn">granted<//> ${module} ${text}</li>`)}${removed.map((/** @type {string} */ text) => html`<li><${Badge} tone="plain">removed<//> ${module} ${text.replace(/^may /, "may no longer ")}</li>`)}`,
    )}
    ${hosts.added.map((/** @type {string} */ host) => html`<li>The host ${host} is added</li>`)}
    ${hosts.removed.map((/** @type {string} */ host) => html`<li>The host ${host} is removed</li>`)}
    ${modules.map((/** @type {any} */ each) => html`<li>The module ${each.module}${at(each.host)} ${actions[each.action] ?? each.action} <span class="soft">(${each.because.join(", ")})</span></li>`)}
    ${ports.map((/** @type {any} */ each) => html`<li>${each.service} ${each.action === "open" ? "opens" : "closes"} port ${each.port} of ${each.address}</li>`)}
    ${certificates.map((/** @type {string} */ name) => html`<li>The certificate of ${name === "*" ? "every other name" : name} changes</li>`)}
    ${waiting.length > 0 && html`<li>Waits for the next start: ${waiting.map((/** @type {string} */ name) => html`<code>${name}</code> `)}</li>`}
  </ul>`;
}
