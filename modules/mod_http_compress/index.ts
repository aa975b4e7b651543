/** Compresses responses of apps, as the option configures it. */
import type { Context } from "koa";
import type { HttpEvent } from "../../core/types.ts";
import { Bounds, type Limits } from "./bounds.ts";
import { Compressor } from "./compressor.ts";
import { CompressMetrics } from "./metrics.ts";
import { options } from "./options.ts";
import { RuleBook, type View } from "./rules.ts";

export { options };
export const global = true;
export const depends = ["http"];

/** Runs outside of other middleware, which therefore sees plain bodies, and inside of guards. */
const ORDER_OF_ALL = -500;
/** The entry for one app runs inside of the entry for all apps, so it decides first. */
const ORDER_OF_ONE = -499;
/** Seconds between updates of the module's status. */
const STATUS_TIME = 10;

export default function load(module: View): void {
  const metrics = new CompressMetrics();
  const bounds = new Bounds(limitsOf(module));
  const cached = () => bounds.cache.used;
  module.provides("metrics", metrics.provider(cached));
  const rules = new RuleBook(module);
  /** Functions that remove the middleware, by app. */
  const covered = new Map<string, () => Promise<void>>();
  /** Responses that the entry of an app has already decided about. */
  const decided = new WeakSet<Context>();

  /** Inserts the middleware before an app, for as long as an entry names the app. */
  function cover(app: string): void {
    const isOfAll = app === "*";
    const tally = metrics.tally();
    const compressor = new Compressor(bounds, tally);
    const remove = module.provides("http-middleware", {
      name: `compression of ${app}`,
      order: isOfAll ? ORDER_OF_ALL : ORDER_OF_ONE,
      ...(isOfAll ? {} : { apps: [app] }),
      describe: () => ({ settings: rules.settings(app), counts: tally.counts }),
      middleware: async (given, next) => {
        await next();
        const context = given as unknown as Context;
        if (decided.has(context) || context.respond === false || context.headerSent) return;
        const { request } = (context.state as { event: HttpEvent }).event;
        const own = rules.of(request.host, app);
        if (own === undefined) return;
        if (!isOfAll) decided.add(context);
        if (!own.isExcepted(request.path)) await compressor.compress(context, own);
      },
    });
    covered.set(app, remove);
  }

  let shown = "";
  function show(): void {
    const { apps } = rules;
    const what = apps.length === 0 ? "no app has an entry" : `compresses ${apps.join(", ")}`;
    const { bytesIn, bytesOut } = metrics.total;
    const saved = bytesIn === 0 ? "" : `; ${megabytes(bytesIn)} sent as ${megabytes(bytesOut)}`;
    if (shown === what + saved) return;
    shown = what + saved;
    module.set_status("info", shown);
  }

  function configure(): void {
    rules.configure();
    bounds.limits = limitsOf(module);
    const { apps } = rules;
    for (const app of apps) if (!covered.has(app)) cover(app);
    for (const [app, remove] of covered) {
      if (apps.includes(app)) continue;
      covered.delete(app);
      void remove();
    }
    show();
  }

  configure();
  module.changed = configure;
  module.add_host = (view, isLast) => {
    rules.add(view as unknown as View);
    if (isLast) configure();
  };
  module.add_timer(STATUS_TIME, () => {
    show();
    return STATUS_TIME;
  });
}

function limitsOf(module: View): Limits {
  return {
    cacheBytes: module.get_option("http_compress_cache"),
    cachedFile: module.get_option("http_compress_cached_file"),
    jobs: module.get_option("http_compress_jobs"),
    streams: module.get_option("http_compress_streams"),
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
