/** A page at `/` where nothing else is mounted, for those who may operate the server. Others get the 404 that is there anyway. */
import { createHash } from "node:crypto";
import { appPaths, type HttpModule } from "../../../core/http/index.ts";
import type { HttpErrorEvent, HttpRequest, Module } from "../../../core/types.ts";
import { type Identity, isNavigation, isOfBrowser, type PageKeys } from "../dashboard/keys.ts";
import { type StartFacts, signedInPage, startPage, style } from "./page.ts";

/** After hooks that ask for no priority, which are pages of operators, and before the error pages of the host. */
const PRIORITY = -0.5;

const headers = {
  content_type: "text/html; charset=utf-8",
  content_security_policy: `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  cache_control: "no-store",
  // Pages of apps, which have the same origin, cannot look into it.
  cross_origin_opener_policy: "same-origin",
  referrer_policy: "no-referrer",
  x_content_type_options: "nosniff",
  x_frame_options: "DENY",
} as const;

export interface StartPageDeps {
  /** Undefined for strangers, who are told nothing of what is served. */
  readonly identify: (request: HttpRequest) => Promise<Identity | undefined>;
  readonly keys: () => Promise<PageKeys>;
}

export function openStartPage(module: Module, { identify, keys }: StartPageDeps): void {
  if (module.get_option_boolean("admin_start_page") === false) return;
  const http = module.depends<HttpModule>("http");
  const page = async (request: HttpRequest, response: HttpErrorEvent["response"]) => {
    const isKnown = (await identify(request)) !== undefined;
    // The cookie of a session is not sent here, and what says that there is one proves nothing.
    if (!isKnown && !(await keys()).hasMark(request)) return undefined;
    Object.assign(response.headers, headers);
    return isKnown ? startPage(factsOf(module, http, request.host)) : signedInPage(dashboardOf(module));
  };
  module.hook(
    "http-error",
    ({ code, request, response }: HttpErrorEvent) => {
      if (code !== 404 || request?.path !== "/" || !isAsked(request)) return undefined;
      // An app that is there and answers 404 by itself has its own page.
      if (http.explain("GET", "/", request.host).candidates.length > 0) return undefined;
      return page(request, response);
    },
    PRIORITY,
  );
}

/** By a person who opens the address, and by no script of another page. */
function isAsked(request: HttpRequest): boolean {
  const { method, headers } = request;
  if ((method !== "GET" && method !== "HEAD") || !/\btext\/html\b/.test(headers.accept ?? "")) return false;
  return isNavigation(request) || !isOfBrowser(request);
}

/** Its base path, such as `/admin`. */
function dashboardOf(module: Module): string {
  return new URL(module.http_url()).pathname.replace(/\/$/, "");
}

function factsOf(module: Module, http: HttpModule, host: string): StartFacts {
  const { version, config, modules, warnings } = module.server.status();
  const apps = appPaths(http.routes()).filter((app) => app.host === "*" || app.host === host);
  const files = apps.find(({ module: owner }) => owner === "http_files");
  const folder = module.server.config.options().find(({ name }) => name === "http_files_dir")?.value;
  return {
    version,
    config,
    warnings,
    files: files === undefined || folder === undefined ? undefined : { path: files.path, folder: JSON.parse(folder) },
    dashboard: dashboardOf(module),
    failed: [...new Set(modules.filter(({ status }) => status === "failed").map(({ name }) => name))],
    apps: apps.filter((app) => app.module !== module.name).sort((one, other) => one.path.localeCompare(other.path)),
  };
}
