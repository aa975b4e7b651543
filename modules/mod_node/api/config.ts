/** The configuration of the node. */

import type { LowLevelNode } from "../node/low_level_node.ts";
import { JsonText } from "../storage/repo/config_document.ts";
import type { WaitingKey } from "../storage/repo/in_force.ts";
import { profiles } from "../storage/repo/profiles.ts";
import { configKeys } from "../storage/repo/schema.ts";
import { requireShown } from "../storage/repo/secrets.ts";
import { failure } from "../util/errors.ts";
import type { CallOptions } from "./common.ts";

/** A configuration, or a part of it. */
export type ConfigDocument = Readonly<Record<string, unknown>>;

/**
 * The rules for keys: those of go-ipfs 0.9 (default), or those of Kubo 0.43, which refuses unknown
 * keys.
 */
export interface ConfigOptions extends CallOptions {
  readonly rules?: "0.9" | "0.43" | undefined;
}

export interface ConfigGetOptions extends ConfigOptions {
  /** Replace the word `auto` by the value that it stands for. */
  readonly expandAuto?: boolean | undefined;
}

export interface ConfigSetOptions extends ConfigOptions {
  /** The value is given as JSON text. */
  readonly json?: boolean | undefined;
  /** The value is a boolean given as text: `true`, or anything else for false. */
  readonly bool?: boolean | undefined;
}

export interface ConfigProfilesApplyOptions extends CallOptions {
  /** Do not change anything; only report what would change. */
  readonly dryRun?: boolean | undefined;
}

/** The whole configuration before and after, without secrets. */
export interface ConfigProfilesApplyResult {
  readonly original: ConfigDocument;
  readonly updated: ConfigDocument;
}

export interface ConfigProfile {
  readonly name: string;
  readonly description: string;
}

export interface ConfigProfilesApi {
  /** Applies a profile; the previous configuration is saved as a file next to it. */
  apply(profile: string, options?: ConfigProfilesApplyOptions): Promise<ConfigProfilesApplyResult>;
  list(options?: CallOptions): Promise<ConfigProfile[]>;
}

/** A key of the configuration, whether or not the file contains it. */
export interface ConfigKeyInfo {
  /** Dotted path; `*` stands for a name that the operator chooses. */
  readonly key: string;
  /** Kind of the value, as the reference page names it. */
  readonly type: string;
  readonly help: string;
  /** The value in a new repo; undefined if a new repo does not contain the key. */
  readonly init: unknown;
  /**
   * When a changed value takes effect: as soon as it is written, at the next start, or never,
   * because this node does not use it.
   */
  readonly applies: "live" | "start" | "none";
  /** Whether the key is a secret or contains one; `get` refuses such keys. */
  readonly isSecret: boolean;
}

export interface ConfigApi {
  /** Path of the config file. */
  readonly path: string;
  /**
   * Resolves to the value at a dotted path such as `Addresses.API`. @throws NodeError for unknown
   * keys and for secrets
   */
  get(key: string, options?: ConfigGetOptions): Promise<unknown>;
  /** Resolves to the whole configuration without secrets. */
  getAll(options?: ConfigGetOptions): Promise<ConfigDocument>;
  /**
   * Sets a value. Resolves when the value is written and, for keys that apply live, in effect;
   * `waiting` lists the values that are not in effect yet.
   *
   * @throws NodeError for a value of the wrong type, and for secrets
   */
  set(key: string, value: unknown, options?: ConfigSetOptions): Promise<void>;
  /**
   * Replaces the whole configuration, given as an object or as JSON text. Secrets are preserved; by
   * the rules of 0.43, so is every key that the new document omits.
   */
  replace(document: ConfigDocument | string, options?: ConfigOptions): Promise<void>;
  /**
   * Lets `editor` edit a copy of the file (including its secrets), and adopts the result if it is
   * valid.
   */
  edit(editor: (file: string) => Promise<void>, options?: CallOptions): Promise<void>;
  /**
   * Reads the file again and applies the changes that other programs have made.
   *
   * @throws NodeError if the file is not a valid configuration; the current configuration then
   * stays in effect
   */
  reread(options?: CallOptions): Promise<void>;
  /** Returns every key that this node knows, in the order of a new file. */
  keys(): readonly ConfigKeyInfo[];
  /**
   * Returns the values that are written but not in effect: they wait for the next start or, if they
   * have a reason, could not be applied.
   */
  waiting(): readonly WaitingKey[];
  readonly profiles: ConfigProfilesApi;
}

function isSecret(key: string): boolean {
  try {
    requireShown(key);
    return false;
  } catch {
    return true;
  }
}

function parsed(text: string): JsonText {
  try {
    return new JsonText(text);
  } catch (error) {
    throw failure("JSON_INVALID", { reason: `failed to unmarshal json. ${(error as Error).message}` }, error);
  }
}

export function configApi({ repo: { config } }: LowLevelNode): ConfigApi {
  return {
    path: config.path,
    get: (key, options) => config.get(key, options),
    getAll: (options) => config.show(options),
    async set(key, value, { json, bool, rules } = {}) {
      const given = () => {
        if (typeof value !== "string") return value;
        if (json === true) return parsed(value);
        return bool === true ? value === "true" : value;
      };
      await config.set(key, given, rules);
    },
    replace: (document, { rules } = {}) =>
      config.replace(typeof document === "string" ? document : JSON.stringify(document), rules),
    edit: (editor) => config.edit(editor),
    async reread() {
      await config.reread();
    },
    keys: () =>
      Object.entries(configKeys).map(([key, { kind, help, init, applies }]) => {
        return { key, type: kind.name, help, init, applies, isSecret: isSecret(key) };
      }),
    waiting: () => config.waiting,
    profiles: {
      async apply(profile, { dryRun } = {}) {
        const { before, after } = await config.applyProfile(profile, { dryRun: dryRun === true });
        return { original: before, updated: after };
      },
      async list() {
        return Object.entries(profiles).map(([name, { help }]) => ({ name, description: help }));
      },
    },
  };
}
