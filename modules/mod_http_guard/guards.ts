/** The guards of all hosts and apps, as the options are now. */
import { statSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { RateLimit } from "../../core/http/index.ts";
import type { HttpRequest, MiddlewareContext, Module } from "../../core/types.ts";
import type { Settings } from "./description.ts";
import { Guard } from "./guard.ts";
import type { options } from "./options.ts";
import { readUsers, Users } from "./users.ts";

export type View = Module<typeof options>;

const uptime = () => performance.now() / 1000;

export class Guards {
  readonly #module: View;
  /** By host; "*" has the options of the server. */
  readonly #views: Map<string, View>;
  /** By host, then by app. */
  #guards: ReadonlyMap<string, ReadonlyMap<string, Guard>> = new Map();
  #limits: ReadonlyMap<string, RateLimit> = new Map();
  #files = "";

  constructor(module: View) {
    this.#module = module;
    this.#views = new Map([["*", module]]);
  }

  add(view: View): void {
    this.#views.set(view.host, view);
  }

  /** The guard of an app where the request was sent to. */
  of(host: string, app: string): Guard | undefined {
    return (this.#guards.get(host) ?? this.#guards.get("*"))?.get(app);
  }

  /** What the guard of an app does, and what it does on hosts where that differs. */
  settings(app: string): Settings {
    const settingsOn = (host: string) => this.of(host, app)?.settings ?? [{ title: "Guard", text: "none" }];
    const usual = settingsOn("*");
    const own = [...this.#guards.keys()].flatMap((host) => {
      const settings = settingsOn(host);
      return isDeepStrictEqual(settings, usual) ? [] : settings.map((setting) => ({ ...setting, host }));
    });
    return [...usual, ...own];
  }

  get apps(): string[] {
    return [...new Set(this.#guards.values().flatMap((host) => host.keys()))];
  }

  /**
   * Reads the options and the files of users; limits that are as before go on counting.
   * @throws {ModhostError} OPTION_INVALID: nothing has changed then
   */
  configure(): void {
    const files = this.#look();
    const limits = new Map<string, RateLimit>();
    const limitsFor = (place: readonly string[]) => (rate: RateLimit["rate"]) => {
      const key = JSON.stringify([...place, rate]);
      const limit = this.#limits.get(key) ?? new RateLimit(rate);
      limits.set(key, limit);
      return limit;
    };
    const guardsOf = (host: string, view: View) => {
      const users = new Users(readUsers(view), uptime);
      const { tokens, log } = this.#module;
      return Object.entries(view.get_option("http_guard")).map(([app, entry]) => {
        const option = `http_guard.${app}`;
        const missing = entry.users.filter((name) => name !== "*" && !users.has(name));
        if (missing.length > 0) log.warn("%s.users: nobody is named %s", option, missing.join(", "));
        const place = { app, option, users, tokens, limit: limitsFor([host, app]), secureUrl: secureUrlBy(view) };
        return [app, new Guard(entry, place)] as const;
      });
    };
    this.#guards = new Map([...this.#views].map(([host, view]) => [host, new Map(guardsOf(host, view))]));
    this.#limits = limits;
    this.#files = files;
  }

  /** True once after a file of users has changed. */
  noticeFiles(): boolean {
    const before = this.#files;
    this.#files = this.#look();
    return this.#files !== before;
  }

  #look(): string {
    const paths = new Set(this.#views.values().map((view) => view.get_option("http_guard_users_file")));
    const facts = [...paths].map((path) => {
      const stat = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
      return [path, stat?.ino, stat?.size, stat?.mtimeMs];
    });
    return JSON.stringify(facts);
  }
}

/** Under the port of `http_external_url` where that is HTTPS; else that of the server, or, behind a proxy, the usual one. */
function secureUrlBy(view: View) {
  return ({ originalUrl }: MiddlewareContext, { url, headers, from_proxy }: HttpRequest): string | undefined => {
    const name = (url.host ?? headers.host)?.replace(/:\d*$/, "");
    if (name === undefined || name === "") return undefined;
    const external = (view as Module).get_option<string>("http_external_url");
    const own = view.listening().find(({ service }) => service === "https")?.port;
    const isProxied = from_proxy && (headers.x_forwarded_proto ?? headers.forwarded) !== undefined;
    const port = external?.startsWith("https:") ? new URL(external).port : isProxied ? "" : String(own ?? "");
    return `https://${name}${port === "" || port === "443" ? "" : `:${port}`}${originalUrl}`;
  };
}
