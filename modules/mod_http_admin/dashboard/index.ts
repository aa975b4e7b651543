/** The dashboard: pages in the browser that are a client of the Admin API. */
import { keepUncompressed } from "../../../core/http/index.ts";
import type { Handler, HttpRequest, RouteTable } from "../../../core/types.ts";
import type { Items } from "../items.ts";
import { type DocumentFacts, documentResponse } from "./document.ts";
import { PageFiles, type PageFolder } from "./files.ts";
import { isFromElsewhere, isNavigation, type PageKeys, wantsPage } from "./keys.ts";

export interface DashboardDeps {
  readonly keys: () => Promise<PageKeys>;
  readonly isLocal: (request: HttpRequest) => Promise<boolean>;
  readonly isSignedIn: (request: HttpRequest) => Promise<boolean>;
  readonly items: Items;
}

interface Library extends PageFolder {
  readonly imports: Readonly<Record<string, string>>;
}

let found: readonly Library[] | undefined;

/** Looked up when the first page is requested, because few servers need them. */
function libraries(): readonly Library[] {
  found ??= [
    {
      name: "preact",
      folder: folderOf(import.meta.resolve("preact")),
      only: ["preact.mjs"],
      imports: { preact: "preact.mjs" },
    },
    {
      name: "hooks",
      folder: folderOf(import.meta.resolve("preact/hooks")),
      only: ["hooks.mjs"],
      imports: { "preact/hooks": "hooks.mjs" },
    },
    { name: "htm", folder: folderOf(import.meta.resolve("htm")), only: ["htm.mjs"], imports: { htm: "htm.mjs" } },
    {
      name: "htm-preact",
      folder: folderOf(import.meta.resolve("htm/preact")),
      only: ["index.mjs"],
      imports: { "htm/preact": "index.mjs" },
    },
    {
      name: "uplot",
      folder: folderOf(import.meta.resolve("uplot")),
      only: ["uPlot.esm.js", "uPlot.min.css"],
      imports: { uplot: "uPlot.esm.js" },
    },
  ];
  return found;
}

/** The path of the dashboard in its own origin. */
const BASE = "/admin";

const own: PageFolder = { name: "admin", folder: new URL("../pages/", import.meta.url) };

/** Scripts that every page needs, listed so that the browser does not discover them one by one. */
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
export function dashboardRoutes({ items, keys, isLocal, isSignedIn }: DashboardDeps): RouteTable {
  const extensions = () => [...items.pages()].map(([name, pages]) => ({ name: `of-${name}`, ...pages }));
  const files = new PageFiles(() => [own, ...libraries(), ...extensions()]);

  const document: Handler = async (event) => {
    const { request } = event;
    // The length of a compressed response could reveal the key in it.
    keepUncompressed(event);
    const isTab = isNavigation(request);
    // The HTTPS port is for other machines: see `throughPorts`.
    const hasKey = isTab && !isFromElsewhere(request) && !request.secure && (await isLocal(request));
    const facts: DocumentFacts = {
      base: BASE,
      files: `${BASE}/files/${await files.version()}`,
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
      pageKey: hasKey ? (await keys()).of("local") : undefined,
      isSignedIn: isTab && (await isSignedIn(request)),
      opensAgain: isTab && isFromElsewhere(request),
    };
    return documentResponse(facts);
  };
  return {
    GET: () => ({ status_code: 308, headers: { location: `${BASE}/` } }),
    "GET /": document,
    // The dashboard's pages have paths of their own. Scripts and programs that request a missing
    // file do not get a page.
    "GET /*": (event, rest?: string) => (wantsPage(event.request) ? document(event, rest) : undefined),
    "GET /files/*": (event, path: string | undefined) => files.respond(event, path ?? ""),
  };
}

function folderOf(file: string): URL {
  return new URL("./", file);
}
