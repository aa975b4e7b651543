/** Guards apps by configuration: decides who may send requests, how often, and how. */
import { HttpError, reasonOf } from "../../core/index.ts";
import type { HttpEvent, MiddlewareContext, Module } from "../../core/types.ts";
import { Guards, type View } from "./guards.ts";
import { options } from "./options.ts";
import type { Refusal } from "./refusal.ts";
import { Refusals } from "./refusals.ts";

export { options };
export const global = true;
export const depends = ["http"];

/**
 * Guards run outside of all other middleware. The guard of all apps runs before that of one app.
 */
const ORDER_OF_ALL = -1000;
const ORDER_OF_ONE = -999;
/** Seconds between checks of the files of users. */
const FILE_LOOK = 2;

/**
 * Each app in the option gets one middleware, which looks up its guard for each request. So a
 * change of the options does not affect open connections.
 */
export default function load(module: View): void {
  const refusals = new Refusals();
  module.provides("metrics", refusals.metrics);
  const guards = new Guards(module);
  /** Functions that remove the middleware, by app. */
  const guarded = new Map<string, () => Promise<void>>();

  /** Inserts the middleware before an app, for as long as an entry names the app. */
  function guard(app: string): void {
    const isOfAll = app === "*";
    const remove = module.provides("http-middleware", {
      name: `guard of ${app}`,
      order: isOfAll ? ORDER_OF_ALL : ORDER_OF_ONE,
      ...(isOfAll ? {} : { apps: [app] }),
      describe: () => ({ settings: guards.settings(app), counts: refusals.of(app) }),
      middleware: async (context, next) => {
        const { request } = (context.state as { event: HttpEvent }).event;
        const refusal = await guards.of(request.host, app)?.check(context, request);
        if (refusal === undefined) return next();
        refusals.add(app, refusal.reason);
        refuse(context, refusal);
      },
    });
    guarded.set(app, remove);
  }

  function configure(): void {
    guards.configure();
    const { apps } = guards;
    for (const app of apps) if (!guarded.has(app)) guard(app);
    for (const [app, remove] of guarded) {
      if (apps.includes(app)) continue;
      guarded.delete(app);
      void remove();
    }
    module.set_status("info", apps.length === 0 ? "no app has a guard" : `guards ${apps.join(", ")}`);
  }

  configure();
  module.changed = configure;
  module.add_host = (view: Module, isLast) => {
    guards.add(view as View);
    if (isLast) configure();
  };
  module.add_timer(FILE_LOOK, () => {
    if (!guards.noticeFiles()) return FILE_LOOK;
    try {
      configure();
      module.log.info("Read the file of users again");
    } catch (error) {
      module.log.error("Cannot read the users again, so the previous ones stay in force: %s", reasonOf(error));
    }
    return FILE_LOOK;
  });
}

/** Sends a redirect as a response, and anything else as an error page. */
function refuse(context: MiddlewareContext, { status, message, headers = {} }: Refusal): void {
  if (status >= 400) throw Object.assign(new HttpError(status, message, { expose: true }), { headers });
  context.status = status;
  for (const [name, value] of Object.entries(headers)) context.set(name, value);
  context.body = "";
}
