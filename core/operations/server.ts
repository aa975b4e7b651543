/** What `module.server` gives to one module. */
import type { Asker } from "../module/module_context.ts";
import type {
  AuditFilter,
  AuditPage,
  CertificateState,
  Change,
  ConfigPlan,
  LogLine,
  ModuleState,
  Server,
  ServerConfig,
  ServerStatus,
  Successor,
} from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { Requester } from "./change.ts";
import type { Changes, Made } from "./changes.ts";
import type { ConfigEdit } from "./config_file.ts";
import { type TokensDeps, tokenChanges } from "./token_changes.ts";

/** The host, as far as modules operate it. */
export interface ServerDeps {
  readonly changes: Changes;
  status(): ServerStatus;
  modules(): readonly ModuleState[];
  certificates(): readonly CertificateState[];
  change(kind: ModuleChange, name: string, host: string | undefined, asker: Requester): Made;
  /** @throws {ModhostError} what is wrong with the new configuration */
  plan(): Promise<ConfigPlan>;
  apply(asker: Requester): Made;
  readonly config: Pick<ServerConfig, "options" | "file" | "check"> & {
    save(edit: ConfigEdit, asker: Requester): Made;
  };
  stop(timeout: number | undefined, asker: Requester): Change;
  reopenLogs(asker: Requester): Made;
  handOver(successor: Successor, asker: Requester): Made;
  readonly tokens: TokensDeps;
  /** Gives a function that ends it, as the next one does. */
  follow(event: string, hear: (data: never) => void, owner: string): () => void;
  followLog(hear: (line: LogLine) => void): () => void;
  recentLog(): readonly LogLine[];
  audit(filter: AuditFilter | undefined): Promise<AuditPage>;
}

/** What is done to modules. */
export type ModuleChange = "load" | "unload" | "reload";

/** As the record says it. */
export function changeText(kind: ModuleChange, name: string, host: string | undefined): string {
  return `${kind} ${name}${host === undefined ? "" : ` on ${host}`}`;
}

/** Characters of what a module says that it does. */
const MAX_WHAT = 300;

/** As the record says it. */
export const applyText = "apply the configuration";
export const reopenText = "reopen the logs";
export const handOverText = "hand over to another process";

/** As the record says it. */
export const editText = "edit the configuration";

export function serverFor(asker: Asker, deps: ServerDeps): Server {
  const own = `module ${asker.name}`;
  const asking = (by = own) => ({ by, via: by === own ? undefined : asker.name });
  /** What may not be done for a module that is being waited for. */
  const refused = (what: string) => {
    const { occupied } = asker;
    return occupied === undefined ? undefined : new ModhostError("CHANGE_REFUSED", { what, reason: occupied });
  };
  const change = (kind: ModuleChange): Server["load"] => {
    return (name, { host, by } = {}) => {
      const what = changeText(kind, name, host);
      const refusal = refused(what);
      if (refusal === undefined) return deps.change(kind, name, host, asking(by)).inForce;
      return deps.changes.make({ what, ...asking(by) }, () => Promise.reject(refusal)).inForce;
    };
  };
  return {
    status: () => deps.status(),
    modules: () => deps.modules(),
    certificates: () => deps.certificates(),
    load: change("load"),
    unload: change("unload"),
    reload: change("reload"),
    plan: async () => {
      const refusal = refused("a plan");
      if (refusal !== undefined) throw refusal;
      return deps.plan();
    },
    apply: ({ by } = {}) => {
      const refusal = refused(applyText);
      if (refusal === undefined) return deps.apply(asking(by)).inForce;
      return deps.changes.make({ what: applyText, ...asking(by) }, () => Promise.reject(refusal)).inForce;
    },
    config: {
      options: () => deps.config.options(),
      file: () => deps.config.file(),
      check: async (text) => {
        const refusal = refused("a check");
        if (refusal !== undefined) throw refusal;
        return deps.config.check(text);
      },
      save: (text, etag, { by } = {}) => {
        const refusal = refused(editText);
        if (refusal === undefined) return deps.config.save({ text, etag }, asking(by)).inForce;
        return deps.changes.make({ what: editText, ...asking(by) }, () => Promise.reject(refusal)).inForce;
      },
    },
    stop: async ({ timeout, by } = {}) => deps.stop(timeout, asking(by)),
    reopen_logs: ({ by } = {}) => deps.reopenLogs(asking(by)).inForce,
    hand_over: (successor = {}, { by } = {}) => {
      const refusal = refused(handOverText);
      if (refusal === undefined) return deps.handOver(successor, asking(by)).inForce;
      return deps.changes.make({ what: handOverText, ...asking(by) }, () => Promise.reject(refusal)).inForce;
    },
    record: <T>(what: string, work: () => Promise<T>, { by }: { by?: string | undefined } = {}) => {
      return deps.changes.make({ what: what.slice(0, MAX_WHAT), ...asking(by) }, work).work as Promise<T>;
    },
    tokens: tokenChanges(deps.tokens, deps.changes, asking),
    changes: () => deps.changes.recent(),
    audit: (filter) => deps.audit(filter),
    follow: (event, hear) => held(asker, `follower of ${event}`, deps.follow(event, hear, asker.name)),
    follow_log: (hear) => held(asker, "follower of the log", deps.followLog(hear)),
    log: () => deps.recentLog(),
  };
}

/** Ends with the module that asked for it, if nobody ends it before. */
function held(asker: Asker, label: string, end: () => void): () => void {
  const { forget } = asker.hold("follower", label, end);
  return () => {
    forget();
    end();
  };
}
