/** The configuration document of the node. */

import type { LowLevelNode } from "../low_level_node.ts";
import { JsonText } from "../storage/repo/config.ts";
import { profiles } from "../storage/repo/profiles.ts";
import { NodeError } from "../util/errors.ts";
import type { CallOptions } from "./common.ts";

/** A document, or a part of it. */
export type ConfigDocument = Readonly<Record<string, unknown>>;

export interface ConfigSetOptions extends CallOptions {
  /** The value is JSON as text. */
  readonly json?: boolean | undefined;
  /** The value is true for the text `true`, and false for any other. */
  readonly bool?: boolean | undefined;
}

export interface ConfigProfilesApplyOptions extends CallOptions {
  /** Only tell what would change. */
  readonly dryRun?: boolean | undefined;
}

/** Whole documents of before and after, without secrets. */
export interface ConfigProfilesApplyResult {
  readonly original: ConfigDocument;
  readonly updated: ConfigDocument;
}

export interface ConfigProfile {
  readonly name: string;
  readonly description: string;
}

export interface ConfigProfilesApi {
  /** Applies a profile; the configuration as it was is kept beside it. */
  apply(profile: string, options?: ConfigProfilesApplyOptions): Promise<ConfigProfilesApplyResult>;
  list(options?: CallOptions): Promise<ConfigProfile[]>;
}

export interface ConfigApi {
  /** The file that holds it. */
  readonly path: string;
  /** The value at a dotted path such as `Addresses.API`. @throws NodeError for none, and for secrets */
  get(key: string, options?: CallOptions): Promise<unknown>;
  /** The whole document, less its secrets. */
  getAll(options?: CallOptions): Promise<ConfigDocument>;
  /** Writes a value; most take effect at the next start. @throws NodeError for one of another kind, and for secrets */
  set(key: string, value: unknown, options?: ConfigSetOptions): Promise<void>;
  /** Puts another document, also as JSON text, in the place of this one; secrets stay. */
  replace(document: ConfigDocument | string, options?: CallOptions): Promise<void>;
  /** Takes over what `editor` makes of a copy of the file, secrets and all, if that is a configuration. */
  edit(editor: (file: string) => Promise<void>, options?: CallOptions): Promise<void>;
  readonly profiles: ConfigProfilesApi;
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
    get: (key) => config.get(key),
    getAll: () => config.show(),
    async set(key, value, { json, bool } = {}) {
      await config.set(key, () => {
        if (typeof value !== "string") return value;
        if (json === true) return parsed(value);
        return bool === true ? value === "true" : value;
      });
    },
    replace: (document) => config.replace(typeof document === "string" ? document : JSON.stringify(document)),
    edit: (editor) => config.edit(editor),
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
