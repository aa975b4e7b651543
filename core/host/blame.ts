/** What nobody caught, and who wants to end the process: whose code it was, and what becomes of that module. */
import { inspect } from "node:util";
import type { ModuleLog } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import type { HostParts } from "./parts.ts";
import type { Host, ProcessAct } from "./types.ts";

export interface BlameDeps {
  readonly host: Pick<Host, "state">;
  readonly log: () => ModuleLog;
  parts(): Pick<HostParts, "modules" | "quarantine"> | undefined;
}

export class Blame {
  readonly #deps: BlameDeps;

  constructor(deps: BlameDeps) {
    this.#deps = deps;
  }

  report(error: unknown): void {
    const owner = this.#deps.parts()?.modules.errorOwner(error);
    if (owner !== undefined) owner.fault("doing what nobody waits for", error);
    else this.#deps.log().error("Nobody caught this: %s", error instanceof Error ? stackOf(error) : inspect(error));
  }

  contain(error: unknown): boolean {
    this.report(error);
    const parts = this.#deps.parts();
    const owner = parts?.modules.errorOwner(error);
    const reason = `it threw what nobody caught: ${reasonOf(error)}`;
    return this.#deps.host.state === "running" && owner !== undefined && parts?.quarantine.take(owner, reason) === true;
  }

  refuse({ act, ends, called }: ProcessAct): Error | undefined {
    const { host, parts } = this.#deps;
    const { modules, quarantine } = parts() ?? {};
    if (host.state === "stopping" || host.state === "stopped") return undefined;
    const owner = modules?.errorOwner(called) ?? modules?.runningOwner();
    if (owner === undefined) return undefined;
    const refusal = new ModhostError(ends ? "PROCESS_END_REFUSED" : "PROCESS_MOVE_REFUSED", { act, name: owner.name });
    // Where it was called, and not where it is refused.
    refusal.stack = `${refusal.name}: ${refusal.message}${called.stack?.slice(called.stack.search(/\n\s+at /)) ?? ""}`;
    owner.fault(`calling ${act}`, refusal);
    if (ends) quarantine?.take(owner, `it called ${act}`);
    return refusal;
  }
}
