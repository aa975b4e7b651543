/** Compresses answers of apps, by configuration. */
import type { Context } from "koa";
import type { HttpEvent } from "../../core/types.ts";
import { Bounds, type Limits } from "./bounds.ts";
import { Compressor } from "./compressor.ts";
import { Figures } from "./figures.ts";
import { options } from "./options.ts";
import { RuleBook, type View } from "./rules.ts";

export { options };
export const global = true;
export const depends = ["http"];

/** Further out than what others put before apps, which sees plain bodies; guards stand further out. */
const ORDER_OF_ALL = -500;
/** The entry of an app goes before that of all. */
const ORDER_OF_ONE = -499;
/** Seconds between changes of the status. */
const STATUS_TIME = 10;

export default function load(module: View): void {
  const figures = new Figures();
  const bounds = new Bounds(limitsOf(module));
  const cached = () => bounds.cache.used;
  module.provides("metrics", figures.provider(cached));
  const rules = new RuleBook(module);
  const covered = new Set<string>();
  /** Answers that the entry of an app has decided about. */
  const decided = new WeakSet<Context>();

  /** Puts the middleware before an app, for as long as the module is loaded. */
  function cover(app: string): void {
    covered.add(app);
    const isOfAll = app === "*";
    const tally = figures.tally();
    const compressor = new Compressor(bounds, tally);
    module.provides("http-middleware", {
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
  }

  let shown = "";
  function show(): void {
    const { apps } = rules;
    const what = apps.length === 0 ? "no app has an entry" : `compresses ${apps.join(", ")}`;
    const { bytesIn, bytesOut } = figures.total;
    const saved = bytesIn === 0 ? "" : `; ${megabytes(bytesIn)} sent as ${megabytes(bytesOut)}`;
    if (shown === what + saved) return;
    shown = what + saved;
    module.set_status("info", shown);
  }

  function configure(): void {
    rules.configure();
    bounds.limits = limitsOf(module);
    for (const app of rules.apps) if (!covered.has(app)) cover(app);
    show();
  }

  configure();
  module.changed = configure;
  module.add_host = (view) => {
    rules.add(view as unknown as View);
    configure();
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
