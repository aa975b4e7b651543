/** What was done to modules since a server started: a process that begins later does it, too. */
import type { FollowStep } from "../host.ts";
import { moduleName } from "../module/locate.ts";

export class Steps {
  #steps: FollowStep[] = [];

  add(step: FollowStep): void {
    if (step.kind === "apply") {
      // The configuration says again what is loaded; what somebody has asked for beside it stays.
      this.#steps = this.#steps.filter(({ kind }) => kind === "load");
      return;
    }
    if (step.kind !== "load" && step.kind !== "unload") return;
    const { name, host } = step;
    const isSame = (each: FollowStep) =>
      "name" in each && moduleName(each.name) === moduleName(name) && (host === undefined || each.host === host);
    this.#steps = [...this.#steps.filter((each) => !isSame(each)), step];
  }

  all(): readonly FollowStep[] {
    return this.#steps;
  }
}
