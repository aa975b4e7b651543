/** The registries that npm's configuration names, and what their documents say about packages. */
import { dirname, join } from "node:path";
import { PackageError } from "../errors.ts";
import type { PackageSettings } from "../settings.ts";
import {
  type NpmOptions,
  npmConfig,
  npmDefinitions,
  type Packument,
  type PublishedVersion,
  pacote,
  publishedVersion,
  registryFetch,
} from "./libraries.ts";

/** Options whose values are secrets: `//registry.example/:_authToken`, `_auth`. */
const secretOption = /(?:^|:)_?(?:authtoken|auth|password|token|otp)$/i;
const MIN_SECRET = 4;
/** Errors of the network, of Node.js and of npm. */
const unreachable =
  /^(?:E(?:CONN|AI_|HOST|NET|PIPE|TIMEDOUT|NOTFOUND|PROTO|5\d\d)|ENOTFOUND|ERR_|UND_|FETCH_ERROR|CERT|DEPTH|SELF|UNABLE)/;

/** npm's configuration and the documents that were fetched with it, for one operation. */
export class Registries {
  readonly options: NpmOptions;
  readonly #secrets: readonly string[];
  readonly #keys = new Map<string, Promise<readonly unknown[]>>();

  private constructor(options: NpmOptions, secrets: readonly string[]) {
    this.options = options;
    this.#secrets = secrets;
  }

  /**
   * Reads the configuration as npm does: `.npmrc` in the folder and in the user's home, and the
   * environment. npm's libraries insist on a folder for a cache, which stays empty.
   */
  static async open(settings: PackageSettings, cache: string): Promise<Registries> {
    const { folder, env, store, host, node } = settings;
    const config = new (npmConfig())({
      ...npmDefinitions(),
      argv: [process.execPath, "npm", "--prefix", folder],
      cwd: folder,
      env: { ...env },
      npmPath: join(dirname(process.execPath), "../lib/node_modules/npm"),
      warn: false,
    });
    await config.load();
    const documents = new Map<string, unknown>();
    const options = {
      ...config.flat,
      cache,
      tufCache: join(store, ".trust"),
      // The tree is computed for the version that the module will run on, so modhost is not looked
      // up.
      packumentCache: {
        has: (key: string) => /\/modhost$/.test(key) || documents.has(key),
        get: (key: string) => (/\/modhost$/.test(key) ? hostDocument(host) : documents.get(key)),
        set: (key: string, document: unknown) => documents.set(key, document),
        delete: (key: string) => documents.delete(key),
      },
      fullMetadata: true,
      ignoreScripts: true,
      // Every operation reads the current documents, and nothing is written to the cache: writes
      // would go on after a failure.
      headers: { "cache-control": "no-store" },
      nodeVersion: node,
      // These may be set for npm. The operations of this module set them as they need them.
      before: null,
      replaceRegistryHost: "never",
    };
    return new Registries(options, secretsIn(config.flat));
  }

  /** Returns the URL of the registry of a package. */
  registryOf(name: string): string {
    return registryFetch().pickRegistry(name, this.options);
  }

  /** Returns the text with passwords and tokens hidden. */
  readonly mask = (text: string): string => {
    const bare = text.replace(/(\w:\/\/)[^\s/?#@]+@/g, "$1***@");
    return this.#secrets.reduce((masked, secret) => masked.replaceAll(secret, "***"), bare);
  };

  /** Returns the document of a package; undefined if the registry has none. */
  async packument(name: string): Promise<Packument | undefined> {
    try {
      return await pacote().packument(name, this.options);
    } catch (error) {
      if (codeOf(error) === "E404") return undefined;
      throw this.fetchError(error, name);
    }
  }

  /** Returns the matching version that was published before a time; undefined if there is none. */
  async pick(name: string, wanted: string, before?: Date): Promise<PublishedVersion | undefined> {
    try {
      return await publishedVersion(`${name}@${wanted}`, { ...this.options, ...(before && { before }) });
    } catch (error) {
      if (["ETARGET", "ENOVERSIONS"].includes(codeOf(error))) return undefined;
      throw this.fetchError(error, name);
    }
  }

  /** Returns the keys with which a registry signs packages; none if it does not sign. */
  keysOf(registry: string): Promise<readonly unknown[]> {
    const found = this.#keys.get(registry) ?? this.#fetchKeys(registry);
    this.#keys.set(registry, found);
    return found;
  }

  async #fetchKeys(registry: string): Promise<readonly unknown[]> {
    try {
      const found = await registryFetch().json("/-/npm/v1/keys", { ...this.options, registry });
      const { keys } = found as { keys?: readonly { readonly key: string }[] };
      return (keys ?? []).map((each) => ({
        ...each,
        pemkey: `-----BEGIN PUBLIC KEY-----\n${each.key}\n-----END PUBLIC KEY-----`,
      }));
    } catch (error) {
      if (["E404", "E400"].includes(codeOf(error))) return [];
      throw this.fetchError(error, "its signing keys", registry);
    }
  }

  /** Returns an error of this module for one of the network or the registry. */
  fetchError(error: unknown, name: string, registry: string = this.registryOf(name)): unknown {
    const code = codeOf(error);
    const details = { registry, package: name, reason: (error as Error).message };
    if (code === "E401" || code === "E403") return new PackageError("REGISTRY_REFUSED", details);
    return unreachable.test(code) ? new PackageError("REGISTRY_UNREACHABLE", details) : error;
  }
}

export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** The host as a package without dependencies, for modules that have it as a peer dependency. */
function hostDocument(version: string): unknown {
  const manifest = { name: "modhost", version, dist: { tarball: "https://localhost/modhost", integrity: "" } };
  return { name: "modhost", "dist-tags": { latest: version }, versions: { [version]: manifest } };
}

function secretsIn(options: NpmOptions): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (!secretOption.test(name) || typeof value !== "string" || value.length < MIN_SECRET) return [];
    // A password is stored in base64, and may be shown in either form.
    return [value, Buffer.from(value, "base64").toString()].filter((text) => text.length >= MIN_SECRET);
  });
}
