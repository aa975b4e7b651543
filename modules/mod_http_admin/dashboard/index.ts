/** The dashboard: pages in the browser that are a client of the Admin API. */
import { keepUncompressed } from "../../../core/http/index.ts";
import type { Handler, HttpEvent, HttpRequest, Module, RouteTable } from "../../../core/types.ts";
import type { Items } from "../items.ts";
import { type DocumentFacts, documentAnswer } from "./document.ts";
import { PageFiles, type PageFolder } from "./files.ts";
import { type Identity, isNavigation, type PageKeys } from "./keys.ts";

export interface DashboardDeps {
  readonly module: Module;
  readonly keys: () => Promise<PageKeys>;
  /** The identity that a browser may use without a token of its own; undefined where it has to sign in. */
  readonly identify: (request: HttpRequest) => Promise<Identity | undefined>;
  readonly items: Items;
}

interface Library extends PageFolder {
  readonly imports: Readonly<Record<string, string>>;
}

let found: readonly Library[] | undefined;

/** Looked for when the first page is asked for: few servers are. */
function libraries(): readonly Library[] {
  found ??= [
    { name: "preact", folder: folderOf("preact"), only: ["preact.mjs"], imports: { preact: "preact.mjs" } },
    { name: "hooks", folder: folderOf("preact/hooks"), only: ["hooks.mjs"], imports: { "preact/hooks": "hooks.mjs" } },
    { name: "htm", folder: folderOf("htm"), only: ["htm.mjs"], imports: { htm: "htm.mjs" } },
    { name: "htm-preact", folder: folderOf("htm/preact"), only: ["index.mjs"], imports: { "htm/preact": "index.mjs" } },
    {
      name: "uplot",
      folder: folderOf("uplot"),
      only: ["uPlot.esm.js", "uPlot.min.css"],
      imports: { uplot: "uPlot.esm.js" },
    },
  ];
  return found;
}

const own: PageFolder = { name: "admin", folder: new URL("../pages/", import.meta.url) };

/** What every page needs, so that the browser need not find it out script by script. */
const preload = [
  ...["api", "app", "data", "format", "host/section", "live", "main", "router", "sections", "toasts", "ui"].map(
    (name) => `admin/${name}.js`,
  ),
  "preact/preact.mjs",
  "hooks/hooks.mjs",
  "htm/htm.mjs",
  "htm-preact/index.mjs",
];

/** The routes of the dashboard, below `/admin`, for GET and HEAD. */
export function dashboardRoutes({ module, items, keys, identify }: DashboardDeps): RouteTable {
  const extensions = () => [...items.pages()].map(([name, pages]) => ({ name: `of-${name}`, ...pages }));
  const files = new PageFiles(() => [own, ...libraries(), ...extensions()]);
  const base = () => new URL(module.http_url()).pathname.replace(/\/$/, "");

  const document: Handler = async (event) => {
    if (!isPage(event)) return undefined;
    // The length of the answer must not tell anything of the key in it.
    keepUncompressed(event);
    const identity = isNavigation(event.request) ? await identify(event.request) : undefined;
    const facts: DocumentFacts = {
      base: base(),
      files: `${base()}/files/${await files.version()}`,
      imports: {
        ...Object.fromEntries(
          libraries().flatMap(({ name, imports }) =>
            Object.entries(imports).map(([bare, file]) => [bare, `${name}/${file}`]),
          ),
        ),
        "modhost/admin": "admin/kit.js",
      },
      script: "admin/main.js",
      styles: [
        ...["base", "frame", "controls", "content", "tables", "phone"].map((name) => `admin/style/${name}.css`),
        "uplot/uPlot.min.css",
        ...extensions().flatMap(({ name, styles = [] }) => styles.map((style) => `${name}/${style}`)),
      ],
      preload,
      extensions: extensions().map(({ name, script }) => `${name}/${script}`),
      pageKey: identity && (await keys()).of(identity),
    };
    return documentAnswer(facts);
  };
  return {
    GET: () => ({ status_code: 308, headers: { location: `${base()}/` } }),
    "GET /": document,
    "GET /*": document,
    "GET /files/*": (event, path: string | undefined) => files.answer(event, path ?? ""),
  };
}

/** A browser that asks for a page, and no program that asks for what is not there. */
function isPage({ request: { headers } }: HttpEvent): boolean {
  return /\btext\/html\b/.test(headers.accept ?? "");
}

function folderOf(name: string): URL {
  return new URL("./", import.meta.resolve(name));
}
