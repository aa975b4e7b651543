/**
 * The layers that requests pass before they reach apps, such as guards and compression, with their
 * counters.
 */
import { html } from "htm/preact";
import { Ago, compact, duration, Empty, Link, Load, Page, Section, size, useApi } from "modhost/admin";

export default function Middleware() {
  const layers = useApi("/middleware", { every: 5000 });
  return html`<${Page} title="Middleware" lead="The layers that requests pass before they reach apps, the outermost first">
    <${Load} of=${layers}>${(/** @type {any[]} */ all) =>
      all.length === 0 ? empty : all.map((layer, at) => html`<${Layer} key=${at} layer=${layer} />`)}<//>
  <//>`;
}

const empty = html`<${Empty} title="No middleware runs before the apps.">
  <p>The module <code>http_guard</code> checks requests by address, password, token or rate. <code>http_compress</code> compresses responses.</p>
<//>`;

/** @param {{ layer: any }} props */
function Layer({ layer }) {
  const { name, module, apps, host, settings } = layer;
  const before = apps === undefined ? "all apps" : apps.join(", ");
  const hosts = Map.groupBy(settings, ({ host = "" }) => host);
  return html`<${Section} title=${name}>
    <p class="soft">Before ${before}${host !== "*" && ` on ${host}`}, of the module <${Link} to=${`modules/${module}`}>${module}<//></p>
    <div class="columns">
      <div class="section">${[...hosts].map(([of, own]) => html`${of !== "" && html`<p class="soft">On ${of}:</p>`}<${Facts} facts=${own.map(({ title, text }) => [title, text])} />`)}</div>
      <${Facts} facts=${countsOf(layer)} />
    </div>
  <//>`;
}

/** @param {{ facts: readonly (readonly [string, any])[] }} props */
const Facts = ({ facts }) =>
  html`<dl class="facts">${facts.map(([title, value]) => html`<dt>${title}</dt><dd>${value}</dd>`)}</dl>`;

/** @param {any} layer @returns {(readonly [string, any])[]} */
function countsOf({ requests, answered, failed, time, counts }) {
  return [
    ["Requests", compact(requests)],
    ...(answered > 0 ? [/** @type {const} */ (["Responded itself", compact(answered)])] : []),
    ...(failed > 0 ? [/** @type {const} */ (["Failed", html`<span class="bad-text">${compact(failed)}</span>`])] : []),
    ...(requests > 0 ? [/** @type {const} */ (["Time per request", duration(time / requests)])] : []),
    ...counts.map((/** @type {any} */ { title, value, unit, last }) => [
      title,
      html`${unit === "bytes" ? size(value) : compact(value)}${last !== undefined && html`<span class="soft">, <${Ago} time=${last} /></span>`}`,
    ]),
  ];
}
