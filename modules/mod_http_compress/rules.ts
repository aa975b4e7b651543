/** The entries of the option, by virtual host and app. */
import { isDeepStrictEqual } from "node:util";
import { pathFault } from "../../core/http/index.ts";
import { invalidOption } from "../../core/index.ts";
import type { MiddlewareDescription, Module } from "../../core/types.ts";
import { type EncodingName, encodingNames } from "./encoders.ts";
import type { CompressEntry, options } from "./options.ts";
import { EVENT_STREAM, type Rules } from "./response.ts";

type Settings = NonNullable<MiddlewareDescription["settings"]>;

export type View = Module<typeof options>;

export class RuleBook {
  /** Options by host; "*" stands for the server. */
  readonly #views: Map<string, View>;
  /** Rules by host, then by app. */
  #rules: ReadonlyMap<string, ReadonlyMap<string, Rules>> = new Map();

  constructor(module: View) {
    this.#views = new Map([["*", module]]);
  }

  add(view: View): void {
    this.#views.set(view.host, view);
  }

  of(host: string, app: string): Rules | undefined {
    return (this.#rules.get(host) ?? this.#rules.get("*"))?.get(app);
  }

  /** Describes the entry of an app, and how it differs on hosts with their own options. */
  settings(app: string): Settings {
    const settingsOn = (view: View | undefined) => settingsOf(view?.get_option("http_compress")[app]);
    const usual = settingsOn(this.#views.get("*"));
    const own = [...this.#views].flatMap(([host, view]) => {
      const settings = settingsOn(view);
      return isDeepStrictEqual(settings, usual) ? [] : settings.map((setting) => ({ ...setting, host }));
    });
    return [...usual, ...own];
  }

  get apps(): string[] {
    return [...new Set(this.#rules.values().flatMap((host) => host.keys()))];
  }

  /** @throws {ModhostError} OPTION_INVALID, without changing anything */
  configure(): void {
    const rulesOf = (view: View) =>
      new Map(Object.entries(view.get_option("http_compress")).map(([app, entry]) => [app, rulesFrom(entry, app)]));
    this.#rules = new Map([...this.#views].map(([host, view]) => [host, rulesOf(view)]));
  }
}

function settingsOf(entry: CompressEntry | undefined): Settings {
  if (entry === undefined) return [{ title: "Encodings", text: "none" }];
  const { encodings, types, min_size, except, event_streams } = entry;
  return [
    { title: "Encodings", text: encodings.join(", ") || "none" },
    { title: "From", text: `${min_size} bytes` },
    { title: "Types", text: [...types, ...(event_streams ? [EVENT_STREAM] : [])].join(", ") },
    { title: "Except", text: except.join(", ") },
  ].filter(({ text }) => text !== "");
}

/** @throws {ModhostError} OPTION_INVALID */
function rulesFrom(entry: CompressEntry, app: string): Rules {
  const option = `http_compress.${app}`;
  const isKnown = (name: string): name is EncodingName => (encodingNames as readonly string[]).includes(name);
  const encodings = entry.encodings.map((name) => {
    if (!isKnown(name))
      throw invalidOption(`${option}.encodings`, name, `it must be one of ${encodingNames.join(", ")}`);
    return name;
  });
  for (const path of entry.except) {
    const fault = path.startsWith("/") ? pathFault(path) : "it must be a path that begins with /";
    if (fault !== undefined) throw invalidOption(`${option}.except`, path, fault);
  }
  return {
    encodings,
    isType: typeMatcher(entry.types, `${option}.types`),
    minSize: entry.min_size,
    eventStreams: entry.event_streams,
    isOfOne: app !== "*",
    isExcepted: (path) =>
      entry.except.some((except) => path === except || path.startsWith(except.endsWith("/") ? except : `${except}/`)),
  };
}

function typeMatcher(types: readonly string[], option: string): (type: string) => boolean {
  if (types.length === 0) return () => false;
  const patterns = types.map((type) => {
    if (!/^[\w.+*-]+\/[\w.+*-]+$/.test(type))
      throw invalidOption(option, type, "it must be a content type such as text/*");
    return type.toLowerCase().replace(/[.+]/g, "\\$&").replaceAll("*", "[^/]*");
  });
  const pattern = new RegExp(`^(?:${patterns.join("|")})$`);
  return (type) => pattern.test(type);
}
