/**
 * Watches the files of modules: reloads a module when one is saved, and shows failures to browsers
 * on this machine.
 */
import { sep } from "node:path";
import type { EventBus } from "../events.ts";
import { appName } from "../http/routing/app_urls.ts";
import type { Change, HttpErrorEvent, HttpMiddleware, HttpProvider, ModuleState } from "../types.ts";
import { FileWatch } from "../util/file_watch.ts";
import { bundledModules } from "../util/package.ts";
import { failurePage, showsFailures } from "./failure_page.ts";
import type { HostParts } from "./parts.ts";

export interface ModuleWatchDeps {
  readonly parts: HostParts;
  readonly bus: EventBus;
  /** Reloads a module; resolves to the record. */
  reload(name: string): Promise<Change>;
  /** Called with the result of each reload. */
  shown(change: Change): void;
  failed(text: string, ...values: unknown[]): void;
}

/** Milliseconds without a write after which a file counts as saved. */
const STILL_MS = 20;
/**
 * Most editors leave a file missing or empty for a moment while they save it, so such a file is
 * checked again.
 */
const RETRY_MS: readonly number[] = [40, 40, 40, 40, 40];

/** An order before all other middleware. */
const FIRST = -1e9;

/** The files of modules may have changed after these events. */
const events = ["module-loaded", "module-reloaded", "module-unloaded", "config-changed"] as const;

export class ModuleWatch {
  readonly #deps: ModuleWatchDeps;
  readonly #watch: FileWatch;
  /** The last reload of each module that failed, and a function that removes its failure page. */
  readonly #failures = new Map<string, { readonly change: Change; readonly release: () => unknown }>();
  readonly #releases: (() => void)[] = [];

  constructor(deps: ModuleWatchDeps) {
    this.#deps = deps;
    this.#watch = new FileWatch({
      files: () => new Set(this.#states().flatMap((state) => this.#filesOf(state))),
      changed: (files) => this.#changed(files),
      failed: deps.failed,
      still: STILL_MS,
      retries: RETRY_MS,
    });
  }

  /**
   * `since`, in milliseconds since 1970, is when modules started to load: files that were saved
   * later may differ from the loaded code.
   */
  async start(since: number): Promise<void> {
    const { bus } = this.#deps;
    for (const event of events) this.#releases.push(bus.add(event, () => this.#watch.follow()));
    // A change that somebody requests by other means updates the failure pages, too.
    this.#releases.push(bus.add("server-changed", (change: Change) => this.#recordChange(change)));
    this.#releases.push(bus.add("http-error", (event: HttpErrorEvent) => this.#page(event), 1));
    await this.#watch.follow(since);
    // Failed modules are loaded again, so that their failure is recorded and shown.
    for (const { name } of this.#states().filter(({ status }) => status === "failed")) await this.#reload(name);
  }

  close(): void {
    this.#watch.close();
    for (const release of [...this.#releases, ...[...this.#failures.values()].map((failure) => failure.release)])
      release();
  }

  /** Returns the states of modules that an author may be working on. */
  #states(): ModuleState[] {
    return this.#deps.parts.modules.states().filter(({ file }) => file !== undefined && isOwn(file));
  }

  #filesOf({ name, file }: ModuleState): string[] {
    return [...new Set([file as string, ...this.#deps.parts.catalog.filesOf(name)])].filter(isOwn);
  }

  async #changed(files: ReadonlySet<string>): Promise<Iterable<string>> {
    const states = this.#states();
    const concerned = states.filter((state) => this.#filesOf(state).some((file) => files.has(file)));
    for (const name of new Set(concerned.map(({ name }) => name))) await this.#reload(name);
    const hasFixed = concerned.some(({ name, status }) => status === "failed" && !this.#hasFailed(name));
    // Other failed modules may have needed the fixed one.
    const waiting = hasFixed ? this.#states().filter(({ status }) => status === "failed") : [];
    for (const { name } of waiting) await this.#reload(name);
    return [];
  }

  async #reload(name: string): Promise<void> {
    this.#deps.shown(await this.#deps.reload(name));
  }

  #hasFailed(name: string): boolean {
    return this.#states().some((state) => state.name === name && state.status === "failed");
  }

  #recordChange(change: Change): void {
    const [, kind, name] = /^(load|reload|unload) (\S+)/.exec(change.what) ?? [];
    if (kind === undefined || name === undefined) return;
    this.#failures.get(name)?.release();
    this.#failures.delete(name);
    if (kind === "unload" || change.result === "done") return;
    this.#failures.set(name, { change, release: this.#showFor(name, change) });
  }

  /**
   * Shows the failure to local browsers that navigate to the module's apps; the returned function
   * ends that.
   */
  #showFor(name: string, change: Change): () => unknown {
    const { items } = this.#deps.parts;
    const apps = items.of("http-provider").filter(({ owner }) => owner.name === name);
    const [first] = apps;
    if (first === undefined) return () => undefined;
    const middleware: HttpMiddleware = {
      name: "failed reload",
      order: FIRST,
      apps: apps.map(({ item, owner }) => (item as HttpProvider).name ?? appName(owner.name)),
      middleware: (context, next) => {
        if (!showsFailures(context.req)) return next();
        context.status = 500;
        context.set("Cache-Control", "no-store");
        context.type = "html";
        context.body = failurePage([change]);
      },
    };
    return items.add("http-middleware-provider", { item: middleware, owner: first.owner });
  }

  /**
   * Replaces a 404 page: a module that has never been loaded has no apps on which to show its
   * failure.
   */
  #page({ code, request, response }: HttpErrorEvent): string | undefined {
    if (code !== 404 || request === undefined || !showsFailures(request.raw)) return undefined;
    const failed = [...this.#failures].filter(([name]) => this.#hasFailed(name)).map(([, { change }]) => change);
    if (failed.length === 0) return undefined;
    response.headers.content_type = "text/html; charset=utf-8";
    response.headers.cache_control = "no-store";
    return failurePage(failed);
  }
}

function isOwn(file: string): boolean {
  return !file.startsWith(bundledModules + sep) && !file.includes(`${sep}node_modules${sep}`);
}
