/** The configuration of the node. */

import type { LowLevelNode } from "../low_level_node.ts";
import { JsonText } from "../storage/repo/config_document.ts";
import type { WaitingKey } from "../storage/repo/in_force.ts";
import { profiles } from "../storage/repo/profiles.ts";
import { configKeys } from "../storage/repo/schema.ts";
import { requireShown } from "../storage/repo/secrets.ts";
import { NodeError } from "../util/errors.ts";
import type { CallOptions } from "./common.ts";

/** A document, or a part of it. */
export type ConfigDocument = Readonly<Record<string, unknown>>;

/** Whose rules hold for keys: those of go-ipfs 0.9, which is the default, or of Kubo 0.43, which has only keys that it knows. */
export interface ConfigOptions extends CallOptions {
  readonly rules?: "0.9" | "0.43" | undefined;
}

export interface ConfigGetOptions extends ConfigOptions {
  /** Show what the word `auto` stands for in its place. */
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
  /** Applies a profile; the previous configuration is kept as a file beside it. */
  apply(profile: string, options?: ConfigProfilesApplyOptions): Promise<ConfigProfilesApplyResult>;
  list(options?: CallOptions): Promise<ConfigProfile[]>;
}

/** A key of the configuration, whether or not the file has it. */
export interface ConfigKeyInfo {
  /** Dotted path; `*` stands for a name of the operator's choice. */
  readonly key: string;
  /** Kind of its value, as the reference page names it. */
  readonly type: string;
  readonly help: string;
  /** Its value in a new repo; undefined where a new repo does not have it. */
  readonly init: unknown;
  /** When another value takes effect: as it is written, at the next start, or never, as this node does not use it. */
  readonly applies: "live" | "start" | "none";
  /** It is, or holds, a secret: `get` refuses it. */
  readonly isSecret: boolean;
}

export interface ConfigApi {
  /** Path of the config file. */
  readonly path: string;
  /** The value at a dotted path such as `Addresses.API`. @throws NodeError if there is no such key, and for secrets */
  get(key: string, options?: ConfigGetOptions): Promise<unknown>;
  /** The whole configuration, without secrets. */
  getAll(options?: ConfigGetOptions): Promise<ConfigDocument>;
  /**
   * Sets a value. It resolves when the value is written and, for keys that apply live, in force; `waiting` tells of those
   * that are not.
   *
   * @throws NodeError for a value of the wrong type, and for secrets
   */
  set(key: string, value: unknown, options?: ConfigSetOptions): Promise<void>;
  /**
   * Replaces the whole configuration, given as an object or JSON text; the secrets are kept, and by the rules of 0.43 all that
   * it does not say.
   */
  replace(document: ConfigDocument | string, options?: ConfigOptions): Promise<void>;
  /** Lets `editor` edit a copy of the file (with its secrets), and takes the result over if it is valid. */
  edit(editor: (file: string) => Promise<void>, options?: CallOptions): Promise<void>;
  /**
   * Reads the file again and puts in force what others have changed.
   *
   * @throws NodeError when the file is no configuration: what was in force stays so
   */
  reread(options?: CallOptions): Promise<void>;
  /** Every key that this node knows, in the order of a new file. */
  keys(): readonly ConfigKeyInfo[];
  /** What is written and not in force: it waits for the next start or, with a reason, could not be applied. */
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
    throw new NodeError(`failed to unmarshal json. ${(error as Error).message}`, { cause: error });
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
