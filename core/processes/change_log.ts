/**
 * The changes that were made to modules since a server started. A process that starts later makes
 * them as well.
 */
import type { ReplicatedChange } from "../host.ts";
import { moduleName } from "../util/module_name.ts";

export class ChangeLog {
  #changes: ReplicatedChange[] = [];

  add(change: ReplicatedChange): void {
    if (change.kind === "apply") {
      // The configuration loads its own modules again. Modules that were loaded in addition to it
      // stay.
      this.#changes = this.#changes.filter(({ kind }) => kind === "load");
      return;
    }
    if (change.kind !== "load" && change.kind !== "unload") return;
    const { name, host } = change;
    const isSame = (each: ReplicatedChange) =>
      "name" in each && moduleName(each.name) === moduleName(name) && (host === undefined || each.host === host);
    this.#changes = [...this.#changes.filter((each) => !isSame(each)), change];
  }

  all(): readonly ReplicatedChange[] {
    return this.#changes;
  }
}
