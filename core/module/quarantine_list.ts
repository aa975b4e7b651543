import type { HttpEvent, HttpProvider, MiddlewareProvider, ModuleState, OwnedItem } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { withDependants } from "./graph.ts";
import { type Instance, keyOf } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { Items } from "./items.ts";
import type { Release } from "./ledger.ts";
import { newOperation, type Operation } from "./operation.ts";

/** Why a module is out, and until when. Times are seconds since 1970. */
export interface QuarantineNote {
  readonly reason: string;
  readonly since: number;
  /** When it is tried again by itself; undefined while it is being tried. */
  readonly nextTry: number | undefined;
}

export interface QuarantineListDeps {
  readonly items: Items;
  readonly instances: Instances;
  /** Unloads instances that are in order, dependants first; calls `withdrawn` once their routes and hooks are gone. */
  unload(leaving: readonly Instance[], withdrawn: () => void): Promise<void>;
  load(name: string, host: string, operation: Operation): Promise<unknown>;
  finishLoads(): Promise<void>;
  forgetFailure(name: string, host: string): void;
}

/** A module that is out. */
interface Entry {
  readonly key: string;
  readonly name: string;
  readonly host: string;
  readonly file: string | undefined;
  readonly depends: readonly string[];
  /** The one that failed; others are out because they depend on it. */
  readonly root: string;
  note: QuarantineNote;
  /** Takes away what answers in its place. */
  readonly releases: Release[];
}

/** An app of a module, to be answered for while the module is out. */
type App = OwnedItem<HttpProvider | MiddlewareProvider>;

/** Modules that are in quarantine: what they owned is gone, and their apps answer 503. */
export class QuarantineList {
  readonly #deps: QuarantineListDeps;
  /** By `name@host`, in the order of loading. */
  readonly #entries = new Map<string, Entry>();

  constructor(deps: QuarantineListDeps) {
    this.#deps = deps;
  }

  /** Those that are loaded. */
  live(): readonly Instance[] {
    return this.#deps.instances.live();
  }

  /** An instance and all that depend on it. */
  leavingWith(instance: Instance): readonly Instance[] {
    return withDependants(this.live(), [instance]);
  }

  /** Unloads an instance and those that depend on it; their apps answer 503 until `readmit`. False when it is not live. */
  async takeOut(root: Instance, note: QuarantineNote): Promise<boolean> {
    if (!this.live().includes(root)) return false;
    const leaving = this.leavingWith(root).toReversed();
    const out = leaving.map((instance) => ({ instance, apps: this.#appsOf(instance) }));
    await this.#deps.unload(leaving, () => this.#add(out, root, note));
    return true;
  }

  /** Loads what is out because of one instance. Fails when that one does, and then all of it stays out. */
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

  /** Remembers who is out. What this gives takes out again whoever has come back since, and forgets who came after. */
  remember(): () => Promise<void> {
    const known = new Set(this.keys());
    const roots = [...this.#entries.values()].filter(({ key, root }) => key === root);
    return async () => {
      for (const { key, note } of roots) {
        const back = this.live().find((instance) => instance.key === key);
        if (back !== undefined) await this.takeOut(back, note);
      }
      for (const key of this.keys()) if (!known.has(key)) this.lift(key);
    };
  }

  /** Brings back a module, with all that is out for the same reason; true when there was any. */
  async readmitAll(name: string, host?: string): Promise<boolean> {
    const roots = this.#rootsOf(name, host);
    for (const root of roots) await this.readmit(root);
    return roots.length > 0;
  }

  /** Forgets a module, with all that is out for the same reason; true when there was any. */
  drop(name: string, host?: string): boolean {
    const roots = this.#rootsOf(name, host);
    for (const root of roots) for (const { key } of this.with(root)) this.lift(key);
    return roots.length > 0;
  }

  /**
   * Lets an operation load what it may bring back, and what is not out.
   * @throws {ModhostError} MODULE_QUARANTINED
   */
  assertIn(name: string, host: string, { lifts }: Operation): void {
    const isOut = placesOf(name, host).some((key) => this.#entries.has(key) && !lifts.has(key));
    if (isOut) throw new ModhostError("MODULE_QUARANTINED", { name });
  }

  /** Is it out, on the host or on the whole server? */
  has(name: string, host: string): boolean {
    return placesOf(name, host).some((key) => this.#entries.has(key));
  }

  /** `name@host` of all that are out. */
  keys(): ReadonlySet<string> {
    return new Set(this.#entries.keys());
  }

  /** The apps of an instance that is about to leave. */
  #appsOf(instance: Instance): App[] {
    return this.#deps.items.of("http-provider").filter((item): item is App => instance.owns(item.owner));
  }

  /** Puts instances that have just withdrawn into quarantine: `root`, and those that depend on it. */
  #add(
    leaving: readonly { readonly instance: Instance; readonly apps: readonly App[] }[],
    root: Instance,
    note: QuarantineNote,
  ): void {
    for (const { instance, apps } of leaving.toReversed()) {
      const { key, name, host } = instance;
      const { file, depends } = instance.state();
      const own = key === root.key ? note : { ...note, reason: `it depends on ${root.name}, which is in quarantine` };
      const entry: Entry = { key, name, host, file, depends, root: root.key, note: own, releases: [] };
      this.#entries.set(key, entry);
      for (const app of apps) {
        const item = { item: closedApp(app.item, () => entry.note.nextTry), owner: app.owner };
        entry.releases.push(this.#deps.items.add("http-provider", item));
      }
    }
  }

  /** Keys of those that failed, for a module that is out by itself or for one of them: of all hosts, or of one. */
  #rootsOf(name: string, host?: string): string[] {
    const found = [...this.#entries.values()].filter(
      (entry) => entry.name === name && (host === undefined || entry.host === host || entry.host === "*"),
    );
    return [...new Set(found.map(({ root }) => root))];
  }

  /** The one that failed, and those that left with it, dependencies first. */
  with(root: string): readonly { readonly key: string; readonly name: string; readonly host: string }[] {
    return [...this.#entries.values()].filter((entry) => entry.root === root);
  }

  /** Changes what is told of the one that failed and, but for the reason, of those that left with it. */
  renote(root: string, note: QuarantineNote): void {
    for (const entry of this.#entries.values()) {
      if (entry.root !== root) continue;
      entry.note = entry.key === root ? note : { ...note, reason: entry.note.reason };
    }
  }

  /** It is no longer out: nothing answers in its place any more. */
  lift(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    for (const release of entry?.releases ?? []) release();
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.lift(key);
  }

  states(): ModuleState[] {
    return [...this.#entries.values()].map(({ name, host, file, depends, note }) => {
      const { reason, since, nextTry } = note;
      const quarantine = { since, next_try: nextTry };
      return { name, host, status: "quarantined", file, note: reason, depends, holds: {}, quarantine };
    });
  }
}

function placesOf(name: string, host: string): string[] {
  return [keyOf(name, host), keyOf(name, "*")];
}

/** Stands at the place of an app, with its routes: each answers 503, and says when to come again. */
function closedApp(
  { route, middleware, ...place }: HttpProvider | MiddlewareProvider,
  nextTry: () => number | undefined,
): HttpProvider | MiddlewareProvider {
  const wait = () => String(Math.max(1, Math.ceil((nextTry() ?? 0) - Date.now() / 1000)));
  const refuse: NonNullable<HttpProvider["route"]["GET"]> = (event) => {
    event.response.headers.retry_after = wait();
    return 503;
  };
  // Without an exception, which would be told of in the log for each request.
  const refuseAll = ({ state: { event } }: { state: { event: HttpEvent & { refuse(status: number): void } } }) => {
    event.response.headers.retry_after = wait();
    event.refuse(503);
  };
  return {
    ...place,
    streaming_uploads: true,
    ...(route === undefined ? {} : { route: Object.fromEntries(Object.keys(route).map((key) => [key, refuse])) }),
    ...(middleware === undefined ? {} : { middleware: refuseAll }),
  } as unknown as HttpProvider;
}
