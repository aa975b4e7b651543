/** The guards of all hosts and apps, by the current options. */
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
  /** Options by host; "*" stands for the server. */
  readonly #views: Map<string, View>;
  /** Guards by host, then by app. */
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

  /** Returns the guard of an app on the requested host. */
  of(host: string, app: string): Guard | undefined {
    return (this.#guards.get(host) ?? this.#guards.get("*"))?.get(app);
  }

  /** Describes the guard of an app, and how it differs on single hosts. */
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
   * Reads the options and the files of users. Unchanged rate limits keep their counts. @throws
   * {ModhostError} OPTION_INVALID, without changing anything
   */
  configure(): void {
    const files = this.#look();
    const limits = new Map<string, RateLimit>();
    const limitsFor = (scope: readonly string[]) => (rate: RateLimit["rate"]) => {
      const key = JSON.stringify([...scope, rate]);
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
        if (missing.length > 0) log.warn("%s.users: no such user: %s", option, missing.join(", "));
        const guardContext = {
          app,
          option,
          users,
          tokens,
          limit: limitsFor([host, app]),
          secureUrl: secureUrlBy(view),
        };
        return [app, new Guard(entry, guardContext)] as const;
      });
    };
    this.#guards = new Map([...this.#views].map(([host, view]) => [host, new Map(guardsOf(host, view))]));
    this.#limits = limits;
    this.#files = files;
  }

  /** Returns true once after a file of users has changed. */
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

/**
 * Uses the port of `http_external_url` if that is an HTTPS URL, else the server's HTTPS port, or
 * the default port behind a proxy.
 */
function secureUrlBy(view: View) {
  return ({ originalUrl }: MiddlewareContext, request: HttpRequest): string | undefined => {
    const name = (request.url.host ?? request.header("host"))?.replace(/:\d*$/, "");
    if (name === undefined || name === "") return undefined;
    const external = (view as Module).get_option<string>("http_external_url");
    const own = view.listening().find(({ service }) => service === "https")?.port;
    const isProxied =
      request.from_proxy && (request.header("x-forwarded-proto") ?? request.header("forwarded")) !== undefined;
    const port = external?.startsWith("https:") ? new URL(external).port : isProxied ? "" : String(own ?? "");
    return `https://${name}${port === "" || port === "443" ? "" : `:${port}`}${originalUrl}`;
  };
}
