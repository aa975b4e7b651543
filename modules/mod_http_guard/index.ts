/** Guards before apps: who may ask, how often and how, by configuration. */
import { HttpError, reasonOf } from "../../core/index.ts";
import type { HttpEvent, MiddlewareContext, Module } from "../../core/types.ts";
import { Guards, type View } from "./guards.ts";
import { options } from "./options.ts";
import type { Refusal } from "./refusal.ts";
import { Refusals } from "./refusals.ts";

export { options };
export const global = true;
export const depends = ["http"];

/** Further out than what others put before apps; the guard of all apps goes before that of one. */
const ORDER_OF_ALL = -1000;
const ORDER_OF_ONE = -999;
/** Seconds between looks at the files of users. */
const FILE_LOOK = 2;

/**
 * One middleware for each app that an entry names, which looks its guard up for each request: so a change of the options
 * leaves open connections alone.
 */
export default function load(module: View): void {
  const refusals = new Refusals();
  module.provides("metrics", refusals.figures);
  const guards = new Guards(module);
  const guarded = new Set<string>();

  /** Puts the middleware before an app, for as long as the module is loaded. */
  function guard(app: string): void {
    guarded.add(app);
    const isOfAll = app === "*";
    module.provides("http-middleware", {
      name: `guard of ${app}`,
      order: isOfAll ? ORDER_OF_ALL : ORDER_OF_ONE,
      ...(isOfAll ? {} : { apps: [app] }),
      describe: () => ({ settings: guards.settings(app), counts: refusals.of(app) }),
      middleware: async (context, next) => {
        const { request } = (context.state as { event: HttpEvent }).event;
        const refusal = await guards.of(request.host, app)?.check(context, request);
        if (refusal === undefined) return next();
        refusals.add(app, refusal.reason);
        answer(context, refusal);
      },
    });
  }

  function configure(): void {
    guards.configure();
    const { apps } = guards;
    for (const app of apps) if (!guarded.has(app)) guard(app);
    module.set_status("info", apps.length === 0 ? "no app has a guard" : `guards ${apps.join(", ")}`);
  }

  configure();
  module.changed = configure;
  module.add_host = (view: Module) => {
    guards.add(view as View);
    configure();
  };
  module.add_timer(FILE_LOOK, () => {
    if (!guards.noticeFiles()) return FILE_LOOK;
    try {
      configure();
      module.log.info("The file of users was read again");
    } catch (error) {
      module.log.error("The users stay as they were: %s", reasonOf(error));
    }
    return FILE_LOOK;
  });
}

/** A redirect as an answer, anything else as an error page. */
function answer(context: MiddlewareContext, { status, message, headers = {} }: Refusal): void {
  if (status >= 400) throw Object.assign(new HttpError(status, message, { expose: true }), { headers });
  context.status = status;
  for (const [name, value] of Object.entries(headers)) context.set(name, value);
  context.body = "";
}
