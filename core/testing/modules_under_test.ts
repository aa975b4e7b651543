/** How the modules under test run, what they are granted, and what they have used of it. */
import type { HostOptions } from "../host.ts";
import { isPath } from "../module/locate.ts";
import { PermissionLedger } from "../permissions/index.ts";
import type { ModulePermissions, ModuleRun, ModuleState } from "../types.ts";
import { moduleName } from "../util/module_name.ts";
import { type OutsideHost, OutsideHosts, type OutsideResponse } from "./outside.ts";
import {
  assertPermissions,
  type PermissionAssertion,
  type PermissionAssertionOptions,
} from "./permission_assertions.ts";

export interface ModulesUnderTestOptions {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly modules?: readonly unknown[];
  readonly run?: ModuleRun;
  readonly grant?: ModulePermissions;
}

export class ModulesUnderTest {
  /** The option `modules`, if it is to be set. */
  readonly settings: { readonly modules?: Readonly<Record<string, object>> };
  readonly #run: ModuleRun | undefined;
  readonly #ledger = new PermissionLedger();
  readonly #outside: OutsideHosts | undefined;

  /** @throws {TypeError} for `run` without the path of a module, and for `grant` without `run` */
  static async create(options: ModulesUnderTestOptions): Promise<ModulesUnderTest> {
    const settings = modulesOptionOf(options);
    const { run, grant } = options;
    const outside = run === "sandboxed" ? await OutsideHosts.create(grant?.connect ?? []) : undefined;
    return new ModulesUnderTest(settings, run, outside);
  }

  private constructor(
    settings: ModulesUnderTest["settings"],
    run: ModuleRun | undefined,
    outside: OutsideHosts | undefined,
  ) {
    this.settings = settings;
    this.#run = run;
    this.#outside = outside;
  }

  get hostOptions(): Pick<HostOptions, "ledger" | "outside"> {
    return { ledger: this.#ledger, outside: this.#outside };
  }

  /** @throws {Error} for the path of a module that would run in another way */
  checkLoad(name: string): void {
    if (this.#run === undefined || !isPath(name) || Object.hasOwn(this.settings.modules ?? {}, moduleName(name)))
      return;
    throw new Error(`${name} would not be ${this.#run}: name it in the modules of createTestHost`);
  }

  /** @throws {Error} unless the modules are sandboxed */
  outside(origin: string, responses: readonly OutsideResponse[]): OutsideHost {
    if (this.#outside !== undefined) return this.#outside.host(origin, responses);
    const message = `Connections of modules that are ${this.#run ?? "trusted"} do not pass through the host: createTestHost({ run: "sandboxed" }) has them answered`;
    throw new Error(message);
  }

  assert(
    outcome: PermissionAssertion["outcome"],
    permissions: ModulePermissions,
    modules: readonly ModuleState[],
    options: PermissionAssertionOptions | undefined,
  ): Promise<void> {
    return assertPermissions({ outcome, permissions, modules, options, ledger: this.#ledger });
  }

  close(): void {
    this.#outside?.close();
  }
}

function modulesOptionOf({ run, grant, modules = [], config }: ModulesUnderTestOptions): ModulesUnderTest["settings"] {
  if (run === undefined && grant === undefined) return {};
  if (run === undefined) throw new TypeError('grant needs run: createTestHost({ run: "sandboxed", grant })');
  const names = modules.filter((module) => typeof module === "string").map((path) => moduleName(path));
  if (names.length === 0) {
    const message = `run needs a module in a file: createTestHost({ run: "${run}", modules: ["./mod_shop.ts"] })`;
    throw new TypeError(message);
  }
  const given = (config?.modules ?? {}) as Readonly<Record<string, object>>;
  const own = { run, ...(grant !== undefined && { grant }) };
  return { modules: { ...given, ...Object.fromEntries(names.map((name) => [name, { ...own, ...given[name] }])) } };
}
