import { nearest } from "../config/index.ts";
import type { Explanation, LayerInfo, RouteInfo } from "../http/index.ts";
import { counted } from "../util/text.ts";
import { look, lookedAt, lookOptions } from "./admin/running.ts";
import { type Command, UsageError } from "./command.ts";
import { filesArgument, labelOf } from "./hosted.ts";
import { columns } from "./output.ts";

export const routes: Command = {
  name: "routes",
  arguments: `${filesArgument} [--explain "METHOD PATH"]`,
  help: "List all routes, or show how a request would be answered and why",
  options: {
    all: {
      type: "boolean",
      help: "List every route on its own line; by default, routes that differ only in their method share one",
    },
    explain: {
      type: "string",
      value: '"METHOD PATH"',
      help: "Show which routes are tried for this request, in which order",
      firstOfTwo: /^[A-Za-z-]+$/,
      completes: "routes",
    },
    host: { type: "string", value: "NAME", help: "With --explain: the Host of the request" },
    ...lookOptions,
  },
  about: lookedAt,
  async run(context) {
    const { output, options, stderr } = context;
    const request = requestOf(options.explain);
    const name = typeof options.host === "string" ? options.host : undefined;
    return await look(context, async (looked) => {
      const known = await looked.modules();
      const table = await looked.routes();
      const fileOf = (route: Pick<RouteInfo, "module" | "host">) => {
        const states = known.filter((state) => state.name === route.module);
        return (states.find((state) => state.host === route.host) ?? states[0])?.file;
      };
      const failed = known.filter(({ status }) => status === "failed");
      for (const state of failed) stderr.write(`modhost: ${labelOf(state)}: ${state.note ?? "failed"}\n`);
      const code = failed.length === 0 ? 0 : 1;
      if (request === undefined) {
        const all = (table ?? []).map((route) => ({ ...route, file: fileOf(route) }));
        output.show(all, () => routeTable(all, options.all === true));
        return code;
      }
      const explanation = await looked.explain(request.method, request.path, name);
      const near = nearTo(explanation, table ?? []);
      output.show({ ...explanation, near }, () => [explained(explanation, fileOf), ...nearTable(near)].join("\n"));
      return code;
    });
  },
};

type ShownRoute = RouteInfo & { readonly file: string | undefined };

/** If a cell would list more methods than this, it shows their number. */
const MAX_NAMED_METHODS = 3;

function methodsOf(routes: readonly RouteInfo[]): string {
  const methods = routes.map(({ method }) => method);
  return methods.length > MAX_NAMED_METHODS ? `${methods.length} methods` : methods.join(",");
}

function routeTable(all: readonly ShownRoute[], isWhole: boolean): string {
  const same = ({ path, host, app, module, kind }: ShownRoute) => JSON.stringify([path, host, app, module, kind]);
  const lines = isWhole ? all.map((route) => [route]) : [...Map.groupBy(all, same).values()];
  const rows = lines.map((routes) => {
    const { path, host, app, kind, file = "" } = routes[0]!;
    return [methodsOf(routes), path, host, app, kind, file];
  });
  const folded =
    rows.length < all.length
      ? ["", `${counted(all.length, "route")} in ${counted(rows.length, "line")}: --all lists each.`]
      : [];
  return [columns([["METHOD", "PATH", "HOST", "APP", "KIND", "FILE"], ...rows]), ...folded].join("\n");
}

/** A row is `     koa-compress  order 10  files, api  http`. */
function middlewareTable(middleware: readonly LayerInfo[], fileOf: (layer: LayerInfo) => string | undefined): string {
  const rows = middleware.map((layer, at) => [
    `${at + 1}.`,
    layer.name,
    `order ${layer.order}`,
    layer.apps === undefined ? "all apps" : layer.apps.join(", "),
    fileOf(layer) ?? layer.module,
  ]);
  return `Middleware, the outermost first:\n${columns(rows, "  ")}`;
}

function explained(
  explanation: Explanation,
  fileOf: (from: Pick<RouteInfo, "module" | "host">) => string | undefined,
): string {
  const { method, path, host, claimants, middleware, candidates, status, reason } = explanation;
  const tried = candidates.map((route, at) => {
    const argument = route.argument === undefined ? "" : `argument ${JSON.stringify(route.argument)}`;
    return [
      `${at + 1}.`,
      `${route.method} ${route.path}`,
      route.kind,
      route.app,
      fileOf(route) ?? route.module,
      argument,
    ];
  });
  return [
    `${method} ${path ?? "(outside of all paths)"} on ${host ?? "an unknown host"}`,
    ...(claimants.length === 0
      ? []
      : [`These apps may claim the request first: ${claimants.map(({ app }) => app).join(", ")}`]),
    ...(middleware.length === 0 ? [] : [middlewareTable(middleware, fileOf)]),
    tried.length === 0 ? "No route matches." : columns(tried, "  "),
    tried.length === 0 ? `${status}: ${reason}` : `${status} ${reason}`,
  ].join("\n");
}

/** Returns routes similar to a path that has none, by its first segment. */
function nearTo({ path, host, candidates }: Explanation, all: readonly RouteInfo[]): RouteInfo[] {
  if (path === undefined || host === undefined || candidates.length > 0) return [];
  const served = all.filter((route) => route.host === "*" || route.host === host);
  const firstOf = (of: string) => of.split("/")[1] ?? "";
  const firsts = [...new Set(served.map((route) => firstOf(route.path)))].filter((first) => /^[^*]/.test(first));
  const meant = firsts.includes(firstOf(path)) ? firstOf(path) : nearest(firstOf(path), firsts);
  return meant === undefined ? [] : served.filter((route) => firstOf(route.path) === meant);
}

/** Maximum number of similar routes that are shown; `modhost routes` lists all. */
const MAX_NEAR = 6;

function nearTable(near: readonly RouteInfo[]): string[] {
  if (near.length === 0) return [];
  const byPath = [...Map.groupBy(near, ({ path }) => path)];
  const lines = byPath.slice(0, MAX_NEAR).map(([path, routes]) => `  ${methodsOf(routes)} ${path}`);
  const more = byPath.length > MAX_NEAR ? [`  and ${byPath.length - MAX_NEAR} more: modhost routes`] : [];
  return ["Similar routes:", ...lines, ...more];
}

/** Parses `--explain "GET /path"`, `--explain GET /path` or, for GET, `--explain /path`. */
function requestOf(option: string | boolean | undefined): { method: string; path: string } | undefined {
  if (typeof option !== "string") return undefined;
  const words = option.trim().split(/\s+/);
  const [method, path, ...rest] = words[0]?.startsWith("/") ? ["GET", ...words] : words;
  if (method === undefined || path === undefined || !path.startsWith("/") || rest.length > 0) {
    throw new UsageError(`--explain takes a method and a path, such as "GET /hello", not ${words.join(" ")}`);
  }
  return { method: method.toUpperCase(), path };
}
