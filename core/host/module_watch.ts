/** Modules whose files are watched: reloaded when one is saved; what fails is shown to browsers of this machine. */
import { sep } from "node:path";
import type { EventBus } from "../events.ts";
import { appName } from "../http/app_urls.ts";
import type { Change, HttpErrorEvent, HttpMiddleware, HttpProvider, ModuleState } from "../types.ts";
import { FileWatch } from "../util/file_watch.ts";
import { bundledModules } from "../util/package.ts";
import { failurePage, showsFailures } from "./failure_page.ts";
import type { HostParts } from "./parts.ts";

export interface ModuleWatchDeps {
  readonly parts: HostParts;
  readonly bus: EventBus;
  /** Gives the record of the reload. */
  reload(name: string): Promise<Change>;
  /** Hears what came of each reload. */
  shown(change: Change): void;
  failed(text: string, ...values: unknown[]): void;
}

/** Whoever saves a file is done then, milliseconds. */
const STILL_MS = 20;
/** A file that is gone or empty is being written by most editors, and is waited for. */
const RETRY_MS: readonly number[] = [40, 40, 40, 40, 40];

/** Before all other middleware. */
const FIRST = -1e9;

/** After these, the files of modules may be others. */
const events = ["module-loaded", "module-reloaded", "module-unloaded", "config-changed"] as const;

export class ModuleWatch {
  readonly #deps: ModuleWatchDeps;
  readonly #watch: FileWatch;
  /** The last reload of a module, where it has failed; and what shows that in place of the module's apps. */
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

  /** Modules were loaded from `since` on, milliseconds since 1970: what was saved later may not be what was loaded. */
  async start(since: number): Promise<void> {
    const { bus } = this.#deps;
    for (const event of events) this.#releases.push(bus.add(event, () => this.#watch.follow()));
    // Whoever changes a module otherwise has an answer to a failure, too.
    this.#releases.push(bus.add("server-changed", (change: Change) => this.#heard(change)));
    this.#releases.push(bus.add("http-error", (event: HttpErrorEvent) => this.#page(event), 1));
    await this.#watch.follow(since);
    // Once more, for what their failures say.
    for (const { name } of this.#states().filter(({ status }) => status === "failed")) await this.#reload(name);
  }

  close(): void {
    this.#watch.close();
    for (const release of [...this.#releases, ...[...this.#failures.values()].map((failure) => failure.release)])
      release();
  }

  /** Those that an author may be working on. */
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
    const hasMended = concerned.some(({ name, status }) => status === "failed" && !this.#hasFailed(name));
    // They may have needed it.
    const waiting = hasMended ? this.#states().filter(({ status }) => status === "failed") : [];
    for (const { name } of waiting) await this.#reload(name);
    return [];
  }

  async #reload(name: string): Promise<void> {
    this.#deps.shown(await this.#deps.reload(name));
  }

  #hasFailed(name: string): boolean {
    return this.#states().some((state) => state.name === name && state.status === "failed");
  }

  #heard(change: Change): void {
    const [, kind, name] = /^(load|reload|unload) (\S+)/.exec(change.what) ?? [];
    if (kind === undefined || name === undefined) return;
    this.#failures.get(name)?.release();
    this.#failures.delete(name);
    if (kind === "unload" || change.result === "done") return;
    this.#failures.set(name, { change, release: this.#showFor(name, change) });
  }

  /** From now on navigations of browsers of this machine to the module's apps are answered with the failure. */
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

  /** In place of a 404: a module that has never been loaded has no apps that could show it. */
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
