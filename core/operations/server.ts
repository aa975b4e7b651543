/** Creates `module.server` for one module. */
import type { RequestingInstance } from "../module/module_context.ts";
import type {
  AuditFilter,
  AuditPage,
  CertificateState,
  Change,
  ConfigPlan,
  LogLine,
  ModuleState,
  NextServerProcess,
  Server,
  ServerConfig,
  ServerInstalled,
  ServerStatus,
} from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { Requester } from "./change.ts";
import type { ChangeInProgress, Changes } from "./changes.ts";
import type { ConfigEdit } from "./config_file.ts";
import { type TokensDeps, tokenChanges } from "./token_changes.ts";

/** The operations of the host that modules can use. */
export interface ServerDeps {
  readonly changes: Changes;
  status(): ServerStatus;
  modules(): readonly ModuleState[];
  certificates(): readonly CertificateState[];
  change(kind: ModuleChange, name: string, host: string | undefined, requester: Requester): ChangeInProgress;
  /** @throws {ModhostError} the problems of the new configuration */
  plan(): Promise<ConfigPlan>;
  apply(requester: Requester): ChangeInProgress;
  readonly config: Pick<ServerConfig, "options" | "file" | "check"> & {
    save(edit: Omit<ConfigEdit, "file">, requester: Requester): ChangeInProgress;
  };
  readonly installed: Pick<ServerInstalled, "file" | "check"> & {
    save(what: string, edit: Omit<ConfigEdit, "file">, requester: Requester): ChangeInProgress;
  };
  stop(timeout: number | undefined, requester: Requester): Change;
  reopenLogs(requester: Requester): ChangeInProgress;
  handOver(next: NextServerProcess, requester: Requester): ChangeInProgress;
  readonly tokens: TokensDeps;
  /** Returns a function that ends it, as `followLog` does. */
  follow(event: string, listener: (data: never) => void, owner: string): () => void;
  followLog(listener: (line: LogLine) => void): () => void;
  recentLog(): readonly LogLine[];
  audit(filter: AuditFilter | undefined): Promise<AuditPage>;
}

/** The kinds of changes of a single module. */
export type ModuleChange = "load" | "unload" | "reload";

/** The text of the change in the record. */
export function changeText(kind: ModuleChange, name: string, host: string | undefined): string {
  return `${kind} ${name}${host === undefined ? "" : ` on ${host}`}`;
}

/** Maximum number of characters of a module's description of its own change. */
const MAX_WHAT = 300;

/**
 * The text in the record for the moment when another process has loaded everything; whether it then
 * takes over has a record of its own.
 */
export const prepareText = "prepare a hand-over to another process";

/** The text in the record. */
export const applyText = "apply the configuration";
export const reopenText = "reopen the logs";
export const handOverText = "hand over to another process";

/** The text in the record. */
export const editText = "edit the configuration";
const installedText = "edit modules.lock";

export function serverFor(requester: RequestingInstance, deps: ServerDeps): Server {
  const own = `module ${requester.name}`;
  const requesterOf = (by = own) => ({ by, via: by === own ? undefined : requester.name });
  /** Returns the refusal if the host is waiting for the module's own code. */
  const refused = (what: string) => {
    const { occupied } = requester;
    return occupied === undefined ? undefined : new ModhostError("CHANGE_REFUSED", { what, reason: occupied });
  };
  /** Makes a change, unless the host is waiting for the module's own code. */
  const unlessRefused = (what: string, by: string | undefined, make: (by: Requester) => ChangeInProgress) => {
    const refusal = refused(what);
    if (refusal === undefined) return make(requesterOf(by)).inForce;
    return deps.changes.make({ what, ...requesterOf(by) }, () => Promise.reject(refusal)).inForce;
  };
  const assertFree = (what: string) => {
    const refusal = refused(what);
    if (refusal !== undefined) throw refusal;
  };
  const change = (kind: ModuleChange): Server["load"] => {
    return (name, { host, by } = {}) =>
      unlessRefused(changeText(kind, name, host), by, (own) => deps.change(kind, name, host, own));
  };
  return {
    status: () => deps.status(),
    modules: () => deps.modules(),
    certificates: () => deps.certificates(),
    load: change("load"),
    unload: change("unload"),
    reload: change("reload"),
    plan: async () => {
      assertFree("a plan");
      return deps.plan();
    },
    apply: ({ by } = {}) => unlessRefused(applyText, by, (own) => deps.apply(own)),
    config: {
      options: () => deps.config.options(),
      file: () => deps.config.file(),
      check: async (text) => {
        assertFree("a check");
        return deps.config.check(text);
      },
      save: (text, etag, { by } = {}) => unlessRefused(editText, by, (own) => deps.config.save({ text, etag }, own)),
    },
    installed: {
      file: () => deps.installed.file(),
      check: async (text) => {
        assertFree("a check");
        return deps.installed.check(text);
      },
      save: (text, etag, { by, what = installedText } = {}) => {
        const record = what.slice(0, MAX_WHAT);
        return unlessRefused(record, by, (own) => deps.installed.save(record, { text, etag }, own));
      },
    },
    stop: async ({ timeout, by } = {}) => deps.stop(timeout, requesterOf(by)),
    reopen_logs: ({ by } = {}) => deps.reopenLogs(requesterOf(by)).inForce,
    hand_over: (next = {}, { by } = {}) => unlessRefused(prepareText, by, (own) => deps.handOver(next, own)),
    record: <T>(what: string, work: () => Promise<T>, { by }: { by?: string | undefined } = {}) => {
      return deps.changes.make({ what: what.slice(0, MAX_WHAT), ...requesterOf(by) }, work).work as Promise<T>;
    },
    tokens: tokenChanges(deps.tokens, deps.changes, requesterOf),
    changes: () => deps.changes.recent(),
    audit: (filter) => deps.audit(filter),
    follow: (event, listener) =>
      endingWithModule(requester, `follower of ${event}`, deps.follow(event, listener, requester.name)),
    follow_log: (listener) => endingWithModule(requester, "follower of the log", deps.followLog(listener)),
    log: () => deps.recentLog(),
  };
}

/** Ends the listener with the module that added it, unless it has ended before. */
function endingWithModule(requester: RequestingInstance, label: string, end: () => void): () => void {
  const { forget } = requester.recordRelease("follower", label, end);
  return () => {
    forget();
    end();
  };
}
