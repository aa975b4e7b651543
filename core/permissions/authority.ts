/** Decides what one module may do, and counts it. */
import type { ModulePermissions } from "../types.ts";
import { hostPort } from "../util/brackets.ts";
import { ModhostError } from "../util/errors.ts";
import { printable } from "../util/text.ts";
import { connectItem, type Destination } from "./hosts.ts";
import { ANY, permissionKinds } from "./kinds.ts";
import type { PermissionLedger } from "./ledger.ts";
import { grantText, itemsOf, type OwnFolders, type Permission, PermissionSet } from "./set.ts";

export interface AuthorityDeps {
  readonly module: string;
  readonly folders: OwnFolders;
  /** Undefined: the module may do everything, and its uses are only counted. */
  readonly granted: ModulePermissions | undefined;
  /** Whether everything passes, and what would have been refused is listed. */
  readonly isAudited: boolean;
  readonly ledger: PermissionLedger;
  /** Called once for each permission that is refused, or with audit would have been. */
  warn(text: string): void;
}

export class Authority {
  readonly isAudited: boolean;
  readonly #deps: AuthorityDeps;
  readonly #granted: PermissionSet;

  constructor(deps: AuthorityDeps) {
    this.#deps = deps;
    this.isAudited = deps.isAudited;
    this.#granted = new PermissionSet(deps.granted ?? {}, deps.folders);
  }

  /** Whether a permission is granted; counts nothing. */
  allows(permission: Permission): boolean {
    return this.#deps.granted === undefined || this.#granted.coverOf(permission) !== undefined;
  }

  /**
   * Counts a use of a permission.
   * @throws {ModhostError} PERMISSION_DENIED, unless it is granted or the module is audited
   */
  use(permission: Permission): void {
    this.#decide(permission, this.allows(permission));
  }

  /**
   * Counts a dependency on a module of which the grant names no function.
   * @throws {ModhostError} PERMISSION_DENIED, with a grant of the functions that are declared
   */
  depend(module: string, declared: ModulePermissions): void {
    const all = { kind: "call", item: `${module}.${ANY}` } as const;
    const named = itemsOf({ call: { [module]: declared.call?.[module] ?? [] } });
    const [first = all] = named;
    const permission = this.allows(all) ? all : first;
    this.#decide(permission, this.allows(permission), named);
  }

  /**
   * Counts a connection to a host, by its name or its address.
   * @throws {ModhostError} PERMISSION_DENIED, unless it is granted or the module is audited
   */
  connect({ host, port }: Destination): void {
    const { granted } = this.#deps;
    const isGranted = granted === undefined || connectItem(granted.connect ?? [], { host, port }) !== undefined;
    this.#decide({ kind: "connect", item: hostPort(host, port) }, isGranted);
  }

  /** The checks that the broker of the network makes before each connection. */
  readonly network = {
    /** Counts a connection; returns whether it may be made. */
    allows: (host: string, port: number): boolean => {
      try {
        this.connect({ host, port });
        return true;
      } catch {
        return false;
      }
    },
    refusal: (host: string, port: number): Error =>
      denied(this.#deps.module, { kind: "connect", item: hostPort(host, port) }),
  };

  /** Counts a permission that the host has enforced already, or that the kernel enforces. */
  count(permission: Permission, isGranted: boolean): void {
    const { ledger, module } = this.#deps;
    if (ledger.count(module, permission, isGranted)) this.#warn(permission);
  }

  /** `remedy`: what to grant instead of the permission alone. */
  #decide(permission: Permission, isAllowed: boolean, remedy: readonly Permission[] = []): void {
    this.count(permission, isAllowed);
    if (!isAllowed && !this.isAudited) throw denied(this.#deps.module, permission, remedy);
  }

  #warn(permission: Permission): void {
    const { module, warn } = this.#deps;
    const outcome = this.isAudited ? "Not refused because of audit" : "Refused";
    const act = printable(permissionKinds[permission.kind].may(permission.item));
    warn(`${outcome}: it may not ${act}; to allow it, add ${grantText(module, permission)}`);
  }
}

/** Returns the error for a use of a permission that is not granted; `remedy`: what to grant. */
export function denied(module: string, permission: Permission, remedy: readonly Permission[] = []): ModhostError {
  const grant = grantText(module, ...(remedy.length === 0 ? [permission] : remedy));
  const act = printable(permissionKinds[permission.kind].may(permission.item));
  return new ModhostError("PERMISSION_DENIED", { name: module, act, grant, ...permission });
}
