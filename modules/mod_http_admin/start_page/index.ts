/**
 * Serves a page at `/` when nothing else is mounted there, to callers who may operate the server.
 * Others get the usual 404.
 */
import { createHash } from "node:crypto";
import { appPaths, type HttpModule, startEntries } from "../../../core/http/index.ts";
import type { HttpErrorEvent, HttpRequest, Module, OwnedItem, StartPageItem } from "../../../core/types.ts";
import { isNavigation, isOfBrowser, wantsPage } from "../dashboard/keys.ts";
import { type StartFacts, startPage, style } from "./page.ts";

/**
 * Runs after hooks without a priority, which operators use for pages, and before the error pages of
 * the host.
 */
const PRIORITY = -0.5;

const headers = {
  content_type: "text/html; charset=utf-8",
  content_security_policy: `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  cache_control: "no-store",
  // Apps have the same origin, and their pages must not be able to read this one.
  cross_origin_opener_policy: "same-origin",
  referrer_policy: "no-referrer",
  x_content_type_options: "nosniff",
  x_frame_options: "DENY",
} as const;

/** `isLocal` decides who sees the page, because other callers must not learn what is served. */
export function openStartPage(module: Module, isLocal: (request: HttpRequest) => Promise<boolean>): void {
  if (module.get_option_boolean("admin_start_page") === false) return;
  const http = module.depends<HttpModule>("http");
  const items = new Set<OwnedItem<StartPageItem>>();
  module.handle_items(
    "start-page-provider",
    (item) => items.add(item),
    (item) => items.delete(item),
  );
  const page = async (request: HttpRequest, response: HttpErrorEvent["response"]) => {
    if (!(await isLocal(request))) return undefined;
    Object.assign(response.headers, headers);
    response.status_code = 200;
    return startPage(factsOf({ module, http, items }, request.host));
  };
  module.hook(
    "http-error",
    ({ code, request, response }: HttpErrorEvent) => {
      if (code !== 404 || request?.path !== "/" || !isOpenedByPerson(request)) return undefined;
      // An app that is mounted and responds with 404 has its own page.
      if (http.explain("GET", "/", request.host).candidates.length > 0) return undefined;
      return page(request, response);
    },
    PRIORITY,
  );
}

/** Whether a person opens the address, rather than a script of another page. */
function isOpenedByPerson(request: HttpRequest): boolean {
  const { method } = request;
  if ((method !== "GET" && method !== "HEAD") || !wantsPage(request)) return false;
  return isNavigation(request) || !isOfBrowser(request);
}

interface Sources {
  readonly module: Module;
  readonly http: HttpModule;
  readonly items: Iterable<OwnedItem<StartPageItem>>;
}

function factsOf({ module, http, items }: Sources, host: string): StartFacts {
  const { version, config, modules, warnings } = module.server.status();
  const isHere = (named: { readonly host: string }) => named.host === "*" || named.host === host;
  const entries = startEntries(items).filter(isHere);
  const listed = new Set(entries.map((entry) => entry.module));
  const apps = appPaths(http.routes()).filter(isHere);
  const files = apps.find(({ module: owner }) => owner === "http_files");
  const folder = module.server.config.options().find(({ name }) => name === "http_files_dir")?.value;
  return {
    version,
    config,
    warnings,
    files: files === undefined || folder === undefined ? undefined : { path: files.path, folder: JSON.parse(folder) },
    entries: entries.flatMap(({ help, urls: [url] }) => (url === undefined ? [] : [{ help, url }])),
    failed: [...new Set(modules.filter(({ status }) => status === "failed").map(({ name }) => name))],
    apps: apps.filter((app) => !listed.has(app.module)).sort((one, other) => one.path.localeCompare(other.path)),
  };
}
