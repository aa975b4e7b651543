/** What `module.server` gives to one module. */
import type { Asker } from "../module/module_context.ts";
import type { Change, ModuleState, Server, ServerStatus } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { Asked } from "./change.ts";
import type { Changes, Made } from "./changes.ts";

/** The host, as far as modules operate it. */
export interface ServerDeps {
  readonly changes: Changes;
  status(): ServerStatus;
  modules(): readonly ModuleState[];
  change(kind: ModuleChange, name: string, host: string | undefined, asker: Omit<Asked, "what">): Made;
  stop(timeout: number | undefined, asker: Omit<Asked, "what">): Change;
}

/** What is done to modules. */
export type ModuleChange = "load" | "unload" | "reload";

/** As the record says it. */
export function changeText(kind: ModuleChange, name: string, host: string | undefined): string {
  return `${kind} ${name}${host === undefined ? "" : ` on ${host}`}`;
}

export function serverFor(asker: Asker, deps: ServerDeps): Server {
  const own = `module ${asker.name}`;
  const asking = (by = own) => ({ by, via: by === own ? undefined : asker.name });
  const change = (kind: ModuleChange): Server["load"] => {
    return (name, { host, by } = {}) => {
      const { occupied } = asker;
      if (occupied === undefined) return deps.change(kind, name, host, asking(by)).inForce;
      const what = changeText(kind, name, host);
      const refusal = new ModhostError("CHANGE_REFUSED", { what, reason: occupied });
      return deps.changes.make({ what, ...asking(by) }, () => Promise.reject(refusal)).inForce;
    };
  };
  return {
    status: () => deps.status(),
    modules: () => deps.modules(),
    load: change("load"),
    unload: change("unload"),
    reload: change("reload"),
    stop: async ({ timeout, by } = {}) => deps.stop(timeout, asking(by)),
    changes: () => deps.changes.recent(),
  };
}
