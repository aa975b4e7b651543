import type { HttpEvent, HttpProvider, MiddlewareProvider, ModuleState, OwnedItem } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { withDependants } from "./graph.ts";
import { type Instance, keyOf } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { Items } from "./items.ts";
import type { Release } from "./ledger.ts";
import { newOperation, type Operation } from "./operation.ts";

/** Why a module is quarantined, and until when. Times are seconds since 1970. */
export interface QuarantineNote {
  readonly reason: string;
  readonly since: number;
  /** When the host tries it again; undefined during the attempt. */
  readonly nextTry: number | undefined;
}

export interface QuarantineListDeps {
  readonly items: Items;
  readonly instances: Instances;
  /**
   * Unloads instances, which must be in order with dependants first; calls `withdrawn` once their
   * routes and hooks are removed.
   */
  unload(leaving: readonly Instance[], withdrawn: () => void): Promise<void>;
  load(name: string, host: string, operation: Operation): Promise<unknown>;
  finishLoads(): Promise<void>;
  forgetFailure(name: string, host: string): void;
}

/** A quarantined module. */
interface QuarantinedInstance {
  readonly key: string;
  readonly name: string;
  readonly host: string;
  readonly file: string | undefined;
  readonly depends: readonly string[];
  /** The key of the instance that failed; others are quarantined because they depend on it. */
  readonly root: string;
  note: QuarantineNote;
  /** Removes the substitutes that respond with 503. */
  readonly releases: Release[];
}

/** An app of a module; a substitute responds for it while the module is quarantined. */
type App = OwnedItem<HttpProvider | MiddlewareProvider>;

/** Quarantined modules: they are unloaded, and their apps respond with 503. */
export class QuarantineList {
  readonly #deps: QuarantineListDeps;
  /** Quarantined modules by `name@host`, in the order of loading. */
  readonly #entries = new Map<string, QuarantinedInstance>();

  constructor(deps: QuarantineListDeps) {
    this.#deps = deps;
  }

  /** Returns the loaded instances. */
  live(): readonly Instance[] {
    return this.#deps.instances.live();
  }

  /** Returns an instance and all that depend on it. */
  leavingWith(instance: Instance): readonly Instance[] {
    return withDependants(this.live(), [instance]);
  }

  /**
   * Unloads an instance and those that depend on it; their apps respond with 503 until `readmit`.
   * Returns false if it is not live.
   */
  async quarantine(root: Instance, note: QuarantineNote): Promise<boolean> {
    if (!this.live().includes(root)) return false;
    const leaving = this.leavingWith(root).toReversed();
    const out = leaving.map((instance) => ({ instance, apps: this.#appsOf(instance) }));
    await this.#deps.unload(leaving, () => this.#add(out, root, note));
    return true;
  }

  /**
   * Loads everything that is quarantined because of one instance. Rejects if that instance fails to
   * load, and then all of it stays quarantined.
   */
  async readmit(root: string): Promise<void> {
    const { load, finishLoads, forgetFailure } = this.#deps;
    const entries = this.with(root);
    const operation = newOperation({ lifts: new Set(entries.map(({ key }) => key)) });
    try {
      for (const { key, name, host } of entries) {
        try {
          await load(name, host, operation);
        } catch (error) {
          if (key === root) {
            forgetFailure(name, host);
            throw error;
          }
          this.lift(key);
        }
      }
    } finally {
      await finishLoads();
    }
  }

  /**
   * Records which modules are quarantined. The returned function quarantines the ones that have
   * come back since, and removes the ones that were added since.
   */
  remember(): () => Promise<void> {
    const known = new Set(this.keys());
    const roots = [...this.#entries.values()].filter(({ key, root }) => key === root);
    return async () => {
      for (const { key, note } of roots) {
        const back = this.live().find((instance) => instance.key === key);
        if (back !== undefined) await this.quarantine(back, note);
      }
      for (const key of this.keys()) if (!known.has(key)) this.lift(key);
    };
  }

  /**
   * Brings back a module, with all that is quarantined for the same reason; returns true if there
   * was any.
   */
  async readmitAll(name: string, host?: string): Promise<boolean> {
    const roots = this.#rootsOf(name, host);
    for (const root of roots) await this.readmit(root);
    return roots.length > 0;
  }

  /**
   * Removes a module from the list, with all that is quarantined for the same reason; returns true
   * if there was any.
   */
  drop(name: string, host?: string): boolean {
    const roots = this.#rootsOf(name, host);
    for (const root of roots) for (const { key } of this.with(root)) this.lift(key);
    return roots.length > 0;
  }

  /**
   * Allows an operation to load modules that are not quarantined, or that it may bring back.
   * @throws {ModhostError} MODULE_QUARANTINED
   */
  assertNotQuarantined(name: string, host: string, { lifts }: Operation): void {
    const isOut = keysOf(name, host).some((key) => this.#entries.has(key) && !lifts.has(key));
    if (isOut) throw new ModhostError("MODULE_QUARANTINED", { name });
  }

  /** Returns true if the module is quarantined, on this host or on the whole server. */
  has(name: string, host: string): boolean {
    return keysOf(name, host).some((key) => this.#entries.has(key));
  }

  /** Returns the keys (`name@host`) of all quarantined modules. */
  keys(): ReadonlySet<string> {
    return new Set(this.#entries.keys());
  }

  /** Returns the apps of an instance that is about to be unloaded. */
  #appsOf(instance: Instance): App[] {
    return this.#deps.items.of("http-provider").filter((item): item is App => instance.owns(item.owner));
  }

  /** Adds instances that have just been withdrawn: `root`, and those that depend on it. */
  #add(
    leaving: readonly { readonly instance: Instance; readonly apps: readonly App[] }[],
    root: Instance,
    note: QuarantineNote,
  ): void {
    for (const { instance, apps } of leaving.toReversed()) {
      const { key, name, host } = instance;
      const { file, depends } = instance.state();
      const own = key === root.key ? note : { ...note, reason: `it depends on ${root.name}, which is quarantined` };
      const entry: QuarantinedInstance = { key, name, host, file, depends, root: root.key, note: own, releases: [] };
      this.#entries.set(key, entry);
      for (const app of apps) {
        const item = { item: unavailableApp(app.item, () => entry.note.nextTry), owner: app.owner };
        entry.releases.push(this.#deps.items.add("http-provider", item));
      }
    }
  }

  /**
   * Returns the keys of the instances whose failure quarantined a module, on all hosts or on one.
   */
  #rootsOf(name: string, host?: string): string[] {
    const found = [...this.#entries.values()].filter(
      (entry) => entry.name === name && (host === undefined || entry.host === host || entry.host === "*"),
    );
    return [...new Set(found.map(({ root }) => root))];
  }

  /**
   * Returns the instance that failed and those that were quarantined with it, dependencies first.
   */
  with(root: string): readonly { readonly key: string; readonly name: string; readonly host: string }[] {
    return [...this.#entries.values()].filter((entry) => entry.root === root);
  }

  /**
   * Changes the note of the instance that failed and, except for the reason, of those that were
   * quarantined with it.
   */
  updateNote(root: string, note: QuarantineNote): void {
    for (const entry of this.#entries.values()) {
      if (entry.root !== root) continue;
      entry.note = entry.key === root ? note : { ...note, reason: entry.note.reason };
    }
  }

  /** Ends the quarantine of an instance and removes its substitutes. */
  lift(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    for (const release of entry?.releases ?? []) release();
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.lift(key);
  }

  states(): Omit<ModuleState, "run">[] {
    return [...this.#entries.values()].map(({ name, host, file, depends, note }) => {
      const { reason, since, nextTry } = note;
      const quarantine = { since, next_try: nextTry };
      return { name, host, status: "quarantined", file, note: reason, depends, holds: {}, quarantine };
    });
  }
}

function keysOf(name: string, host: string): string[] {
  return [keyOf(name, host), keyOf(name, "*")];
}

/**
 * Returns a substitute for an app, with the same routes: each responds with 503 and a Retry-After
 * header.
 */
function unavailableApp(
  { route, middleware, ...settings }: HttpProvider | MiddlewareProvider,
  nextTry: () => number | undefined,
): HttpProvider | MiddlewareProvider {
  const wait = () => String(Math.max(1, Math.ceil((nextTry() ?? 0) - Date.now() / 1000)));
  const refuse: NonNullable<HttpProvider["route"]["GET"]> = (event) => {
    event.response.headers.retry_after = wait();
    return 503;
  };
  // This sets the status without an exception, because an exception would be logged for each
  // request.
  const refuseAll = ({ state: { event } }: { state: { event: HttpEvent & { refuse(status: number): void } } }) => {
    event.response.headers.retry_after = wait();
    event.refuse(503);
  };
  return {
    ...settings,
    streaming_uploads: true,
    ...(route === undefined ? {} : { route: Object.fromEntries(Object.keys(route).map((key) => [key, refuse])) }),
    ...(middleware === undefined ? {} : { middleware: refuseAll }),
  } as unknown as HttpProvider;
}
