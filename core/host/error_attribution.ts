/**
 * Attributes uncaught errors, and attempts to end or move the process, to the module in whose
 * context they arose.
 */
import type { Instance } from "../module/instance.ts";
import { ModhostError, readableThrown, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { hasOwnFrames, stackOf } from "../util/stack.ts";
import { actingNow, type Usage } from "../util/usage.ts";
import type { HostParts } from "./parts.ts";
import type { Host, ProcessAct } from "./types.ts";

const STEP = "running code that is not awaited";
/** This module carries the requests of all others, so its errors count as the host's own. */
const SERVICE = "http";

export interface ErrorAttributionDeps {
  readonly host: Pick<Host, "state">;
  readonly log: () => Log;
  parts(): Pick<HostParts, "modules" | "quarantine"> | undefined;
}

/**
 * The owner of an error: a live instance, or the account of an unloaded module or of configured
 * middleware.
 */
type Owner = { readonly instance: Instance } | { readonly account: Usage } | undefined;

export class ErrorAttribution {
  readonly #deps: ErrorAttributionDeps;
  /** Modules that are quarantined once the host runs, each with the reason. */
  #early: [instance: Instance, reason: string][] = [];

  constructor(deps: ErrorAttributionDeps) {
    this.#deps = deps;
  }

  report(thrown: unknown): void {
    const error = readableThrown(thrown);
    this.#log(this.#ownerOf(error), error);
  }

  contain(thrown: unknown): boolean {
    const error = readableThrown(thrown);
    const owner = this.#ownerOf(error);
    if (owner !== undefined && "instance" in owner && owner.instance.uncaught(error)) return true;
    this.#log(owner, error);
    if (owner === undefined) return !hasOwnFrames(error);
    return "account" in owner || this.#quarantine(owner.instance, `it threw an uncaught error: ${reasonOf(error)}`);
  }

  /** Called when the host runs: quarantines the modules that failed during the start. */
  started(): void {
    for (const [instance, reason] of this.#early.splice(0)) this.#deps.parts()?.quarantine.quarantine(instance, reason);
  }

  refuse({ act, ends, called }: ProcessAct): Error | undefined {
    const { host, parts } = this.#deps;
    const { modules, quarantine } = parts() ?? {};
    if (host.state === "stopped") return undefined;
    const found = this.#ownerOf(called);
    const owner = found !== undefined && "instance" in found ? found.instance : modules?.runningOwner();
    const name = owner?.name ?? (found !== undefined && "account" in found ? found.account.name : undefined);
    if (name === undefined) return undefined;
    const refusal = new ModhostError(ends ? "PROCESS_END_REFUSED" : "PROCESS_MOVE_REFUSED", { act, name });
    // The stack must show the call, not this check.
    refusal.stack = `${refusal.name}: ${refusal.message}${called.stack?.slice(called.stack.search(/\n\s+at /)) ?? ""}`;
    if (owner === undefined) this.#log(found, refusal);
    else owner.fault(`calling ${act}`, refusal);
    if (ends && owner !== undefined) quarantine?.quarantine(owner, `it called ${act}`);
    return refusal;
  }

  /**
   * Finds the owner by the asynchronous context, and by the stack only where no module has that
   * context.
   */
  #ownerOf(error: unknown): Owner {
    const account = actingNow();
    const modules = this.#deps.parts()?.modules;
    const instance = account === undefined ? modules?.errorOwner(error) : modules?.ownerOf(account);
    if (instance !== undefined) return { instance };
    const gone = account ?? modules?.goneOwner(error);
    return gone && { account: gone };
  }

  #log(owner: Owner, error: unknown): void {
    if (owner === undefined) this.#deps.log().host.error("Uncaught error: %s", stackOf(error));
    else if ("instance" in owner) owner.instance.fault(STEP, error);
    else {
      const { account } = owner;
      const log = this.#deps.log().of(account.name, "*");
      account.logFailure(log, () => log.error("failed while %s: %s", STEP, stackOf(error)));
      account.fault(STEP, error);
    }
  }

  /** Quarantines the module. Returns false where the process has to end instead. */
  #quarantine(instance: Instance, reason: string): boolean {
    const { host, parts } = this.#deps;
    const quarantine = parts()?.quarantine;
    if (instance.name === SERVICE || quarantine === undefined || quarantine.isOff) return false;
    if (host.state === "starting") this.#early.push([instance, reason]);
    else quarantine.quarantine(instance, reason);
    return true;
  }
}
