/** Lists the permissions of a module: declared, granted, used and refused. */
import type { ModulePermissions, ModuleRun, PermissionState } from "../types.ts";
import { isEnforced, kindNames, permissionKinds } from "./kinds.ts";
import type { PermissionUse } from "./ledger.ts";
import { grantText, type OwnFolders, type Permission, PermissionSet, wordsOf } from "./set.ts";

export interface PermissionFacts {
  readonly module: string;
  readonly folders: OwnFolders;
  readonly declared: ModulePermissions;
  /** Undefined: nothing restricts the module. */
  readonly granted: ModulePermissions | undefined;
  readonly run: ModuleRun;
  readonly isAudited: boolean;
  readonly uses: readonly Readonly<PermissionUse>[];
}

/**
 * Returns one entry for each permission. A use counts for the granted item that covers it; one that
 * nothing covers has an entry of its own.
 */
export function permissionStates(facts: PermissionFacts): PermissionState[] {
  const { module, folders, declared, granted, uses, run, isAudited } = facts;
  const wanted = new PermissionSet(declared, folders);
  const given = new PermissionSet(granted ?? {}, folders);
  const own = new PermissionSet({ read: ["."] }, folders);
  const rows = new Map<string, Permission & { used: number; denied: number; last: number }>();
  const row = ({ kind, item }: Permission) => {
    const key = `${kind} ${item}`;
    let found = rows.get(key);
    if (found === undefined) rows.set(key, (found = { kind, item, used: 0, denied: 0, last: 0 }));
    return found;
  };
  for (const each of [...wanted.items, ...given.items]) row(each);
  for (const { used, denied, last, ...permission } of uses) {
    const at = row(given.coverOf(permission) ?? wanted.coverOf(permission) ?? permission);
    at.used += used;
    at.denied += denied;
    at.last = Math.max(at.last, last);
  }
  const order = (row: Permission) => kindNames.indexOf(row.kind);
  const sorted = [...rows.values()].sort((one, other) => order(one) - order(other));
  return sorted.map(({ used, denied, last, ...permission }) => {
    const isGranted = granted === undefined || [given, own].some((set) => set.coverOf(permission) !== undefined);
    // The kernel counts nothing. A module's process reports what Node.js refuses to it, and with an
    // audit what it uses.
    const isCounted = permissionKinds[permission.kind].isDecidedByHost || isAudited;
    return {
      kind: permission.kind,
      what: permission.item,
      text: wordsOf(permission),
      is_declared: wanted.coverOf(permission) !== undefined,
      is_granted: isGranted,
      is_enforced: granted !== undefined && !isAudited && isEnforced(permission.kind, run),
      ...(isCounted ? { used } : {}),
      ...(isCounted || denied > 0 ? { denied } : {}),
      ...(last === 0 ? {} : { last: new Date(last).toISOString() }),
      ...(isGranted ? {} : { grant: grantText(module, permission) }),
    };
  });
}
