/** The start page: what is served at which path, what has failed, and what to try next. */
import type { AppPath } from "../../../core/http/index.ts";
import { escape_html, html_page, page_style, printable } from "../../../core/net/http.ts";

/** The facts that the page shows. */
export interface StartFacts {
  readonly version: string;
  /** Pages of modules that people should open first. */
  readonly entries: readonly { readonly help: string; readonly url: string }[];
  /** The apps of this host, without those of modules that have an entry. */
  readonly apps: readonly AppPath[];
  /** Sentences about problems that an operator should look at. */
  readonly warnings: readonly string[];
  /** Names of modules that are not loaded. */
  readonly failed: readonly string[];
  /** The config file, if there is one. */
  readonly config: string | undefined;
  /** The folder that files are served from, and its path, if any. */
  readonly files: { readonly folder: string; readonly path: string } | undefined;
}

export const style = `${page_style}
main { max-width: 44rem; margin: 0 auto; padding: 12vh 1.5rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; font-weight: 600; }
h2 { margin: 2.25rem 0 .25rem; color: var(--soft); font-size: .875rem; font-weight: 500; }
p { margin: 0 0 .5rem; }
ul, dl { margin: 0; padding: 0; list-style: none; }
li, dl > div { display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
li > :first-child, dt { flex: 1 1 14rem; }
li > :nth-child(2), dd { flex: 1 1 18rem; margin: 0; color: var(--soft); }
code { font: .875em/1.5 ui-monospace, monospace; color: var(--text); }
.warning { border-left: .25rem solid var(--warning); padding-left: .75rem; }
:root { --warning: #b45309; }
@media (prefers-color-scheme: dark) { :root { --warning: #f0a44b; } }
a { text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: .2em; }
footer { margin-top: 2.25rem; color: var(--soft); font-size: .875rem; }
`;

const text = (value: string) => escape_html(printable(value));

export function startPage(facts: StartFacts): string {
  const { version, entries, apps, warnings, config } = facts;
  const parts = [
    ...head(entries),
    ...(warnings.length === 0
      ? []
      : [
          "<h2>Warnings</h2>",
          list(warnings.map((warning) => `<li class="warning"><span>${text(warning)}</span></li>`)),
        ]),
    "<h2>Served here</h2>",
    apps.length === 0 ? "<p>No app yet.</p>" : list(apps.map(appItem)),
    "<h2>Try next</h2>",
    `<dl>\n${tips(facts)
      .map(([what, how]) => `<div><dt>${what}</dt><dd>${how}</dd></div>`)
      .join("\n")}\n</dl>`,
    `<footer>modhost ${text(version)}, ${config === undefined ? "without a config file" : `config ${text(config)}`}. Only callers who may operate the server see this page. Others get a plain 404.</footer>`,
  ];
  return html_page({ title: "modhost is running", style, body: parts.join("\n") });
}

function head(entries: StartFacts["entries"]): string[] {
  return [
    "<h1>modhost is running</h1>",
    "<p>You see this page because nothing is mounted at <code>/</code>.</p>",
    ...entries.map(({ help, url }) => `<p><a href="${escape_html(url)}">${text(help)}</a></p>`),
  ];
}

const list = (items: readonly string[]) => `<ul>\n${items.join("\n")}\n</ul>`;

function appItem({ name, module, path, isPage }: AppPath): string {
  const shown = isPage ? link(path) : `<span>${text(path)}</span>`;
  return `<li>${shown}<span>${text(name)}${name === module ? "" : `, of ${text(module)}`}</span></li>`;
}

/** Returns tips that fit the facts, as pairs of purpose and HTML. */
function tips({ apps, failed, config, files }: StartFacts): [string, string][] {
  const [first] = failed;
  const pages = apps.filter(({ isPage }) => isPage);
  // Prefers one of the operator's own apps.
  const app = pages.find(({ module }) => !module.startsWith("http_")) ?? pages.find(({ name }) => name === "files");
  const code = (command: string) => `<code>${text(command)}</code>`;
  const tip = (what: string, how: string): [string, string] => [what, how];
  return [
    ...(first === undefined ? [] : [tip("When the module is fixed", code(`modhost reload ${first}`))]),
    tip("A first module", `${code("modhost new hello")}, then ${code("modhost run --watch ./mod_hello")}`),
    ...(files === undefined
      ? []
      : [tip("Pages of your own", `in ${code(files.folder)}; they are at ${link(files.path)}`)]),
    tip(
      "An app at this address",
      `${code(`http_paths: { ${app?.name ?? "hello"}: / }`)} in ${config === undefined ? code("modhost.config.yaml") : "the config"}`,
    ),
    tip("Status of the server, in a terminal", `${code("modhost status")}; in a clone ${code("npx modhost status")}`),
  ];
}

const link = (path: string) => `<a href="${escape_html(encodeURI(path))}">${text(path)}</a>`;
