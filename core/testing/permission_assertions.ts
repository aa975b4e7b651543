/** Checks which permissions the modules of a test host have used, and which they were refused. */
import { AssertionError } from "node:assert";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  isEnforced,
  itemsOf,
  type Permission,
  type PermissionLedger,
  PermissionSet,
  type PermissionUse,
  permissionKinds,
  permissionProblems,
} from "../permissions/index.ts";
import type { ModulePermissions, ModuleState, PermissionKind } from "../types.ts";
import { counted } from "../util/text.ts";

export interface PermissionAssertionOptions {
  /** Name of the module. Default: any module that does not run in the host. */
  readonly module?: string;
  /** Seconds to wait for it, because a module may do it later. Default 2. */
  readonly within?: number;
}

export interface PermissionAssertion {
  readonly outcome: "used" | "denied";
  readonly permissions: ModulePermissions;
  readonly options: PermissionAssertionOptions | undefined;
  readonly ledger: PermissionLedger;
  readonly modules: readonly ModuleState[];
}

/**
 * Resolves once each of the permissions was used, or was refused.
 * @throws {AssertionError} saying what was used and refused instead
 * @throws {TypeError} for permissions that are malformed, or that nobody counts
 */
export async function assertPermissions(assertion: PermissionAssertion): Promise<void> {
  const { outcome, permissions, ledger, options: { module, within = 2 } = {} } = assertion;
  const outside = assertion.modules.filter(({ run, name }) => run !== "trusted" && name === (module ?? name));
  checkPermissions(assertion, outside);
  const files = new Map(outside.map(({ name, file = "" }) => [name, dirname(file)]));
  const wanted = itemsOf(permissions);
  const missing = () => {
    const found = [...files].flatMap(([name, folder]) => {
      const set = new PermissionSet(permissions, { folder, dataFolder: join(folder, "data") });
      const uses = ledger.of(name).filter((use) => use[outcome] > 0);
      return uses.flatMap((use) => [use, set.coverOf(use)].filter((each) => each?.kind === use.kind));
    });
    return wanted.filter((permission) => !found.some((each) => isSame(permission, each)));
  };
  const end = performance.now() + within * 1000;
  while (missing().length > 0 && performance.now() < end) await sleep(10);
  const left = missing().map(actOf);
  if (left.length === 0) return;
  const list = (what: "used" | "denied") =>
    [...files.keys()].flatMap((name) =>
      ledger
        .of(name)
        .filter((use) => use[what] > 0)
        .map((use) => `${name}: ${actOf(use)} (${counted(use[what], "time")})`),
    );
  const used = list("used");
  const denied = list("denied");
  const sentence = outcome === "used" ? "The module did not" : "The module was not refused to";
  const message = `${sentence} ${left.join(", ")}.\nUsed: ${used.join(", ") || "nothing"}.\nRefused: ${denied.join(", ") || "nothing"}.`;
  throw new AssertionError({ message, actual: outcome === "used" ? used : denied, expected: left });
}

const isSame = (one: Permission, other: Permission | undefined) => one.kind === other?.kind && one.item === other.item;
const actOf = ({ kind, item }: Permission | PermissionUse) => permissionKinds[kind].may(item);

/** @throws {TypeError} for permissions that are malformed, or that nobody counts */
function checkPermissions({ permissions, outcome }: PermissionAssertion, outside: readonly ModuleState[]): void {
  const [problem] = permissionProblems(permissions, "permissions");
  if (problem !== undefined) {
    throw new TypeError(`${problem.path} is ${JSON.stringify(problem.value)}, but ${problem.allowed}`);
  }
  const kinds = new Set(itemsOf(permissions).map(({ kind }) => kind));
  if (kinds.size === 0) throw new TypeError('Name a permission, such as { connect: ["evil.example:443"] }');
  for (const kind of kinds) {
    const reason = whyUncounted(kind, outcome, outside);
    if (reason !== undefined) throw new TypeError(reason);
  }
}

/** Returns why nobody knows whether permissions of a kind were used or refused. */
function whyUncounted(
  kind: PermissionKind,
  outcome: PermissionAssertion["outcome"],
  outside: readonly ModuleState[],
): string | undefined {
  if (!outside.some(({ run }) => isEnforced(kind, run))) {
    const runs = outside.map(({ name, run }) => `${name} is ${run}`).join(", ") || "the modules are trusted";
    return `The host does not enforce the permissions of the kind ${kind} (${runs}): use createTestHost({ run: "sandboxed" })`;
  }
  if (outcome === "denied" || permissionKinds[kind].isDecidedByHost) return undefined;
  return `The kernel enforces permissions of the kind ${kind}, and counts no uses: check what the module does`;
}
