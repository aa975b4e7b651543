/** The configuration file: read anew for every call, written atomically, one change at a time. */
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { requireSendableHeaders } from "./header_fault.ts";
import { type IdentityConfig, readIdentity } from "./identity.ts";
import { getAt, isObject, type JsonObject, parseJson, printJson, setAt, sorted } from "./json.ts";
import { applyProfile, profileNamed } from "./profiles.ts";
import { type ConfigPath, type ConfigValue, type Document, decodeConfig, valueAt } from "./schema.ts";
import { keepSecrets, privateKeyPath, requireShown, withoutSecrets } from "./secrets.ts";

const fileMode = 0o600;

/** Whole documents before and after, without secrets. */
export interface ConfigChange {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** Values that replace those of the file. */
export type ConfigOverrides = { readonly [P in ConfigPath]?: ConfigValue<P> };

export class ConfigFile {
  readonly path: string;
  readonly #folder: string;
  readonly #overrides: ConfigOverrides;
  #typed: Document;
  /** Ends when the last change has ended. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, path: string, typed: Document, overrides: ConfigOverrides) {
    this.#folder = folder;
    this.path = path;
    this.#typed = typed;
    this.#overrides = overrides;
  }

  /** @throws NodeError that names the file, when it is not a configuration */
  static async open(folder: string, overrides: ConfigOverrides = {}): Promise<ConfigFile> {
    const path = join(folder, "config");
    try {
      return new ConfigFile(folder, path, decodeConfig(await readDocument(path)), overrides);
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw new NodeError(`${error.message}: mend ${path}, or put back a copy of it`, { cause: error });
    }
  }

  /** Writes the document of a new repo; keys keep their order. */
  static create(folder: string, document: Document): Promise<void> {
    return writeAtomically(join(folder, "config"), printJson(document, "kept"), fileMode);
  }

  /** A value as this process has last read or written it. Most values are read only when the node starts. */
  value<P extends ConfigPath>(path: P): ConfigValue<P> {
    const { [path]: override } = this.#overrides;
    return override === undefined ? valueAt(this.#typed, path) : override;
  }

  /** The value of the file at a dotted path. @throws NodeError as the command `config` */
  async get(path: string): Promise<unknown> {
    requireShown(path);
    return shownAt(await this.#read(), path);
  }

  /**
   * Writes a value and returns what is there afterwards. `value` is called only if the path may be written.
   *
   * @throws NodeError as the command `config`
   */
  async set(path: string, value: () => unknown): Promise<unknown> {
    requireShown(path);
    const wanted = value();
    return this.#change(async (document) => {
      const { changed, typed } = changedAt(document, path, wanted);
      return shownAt(await this.#write(changed, typed), path);
    });
  }

  /** Changes one known key on behalf of the node; it may touch keys that the API does not show. */
  update<P extends ConfigPath>(path: P, change: (before: ConfigValue<P>) => ConfigValue<P>): Promise<void> {
    return this.#change(async (document) => {
      const value = change(valueAt(decodeConfig(document), path));
      await this.#write(document, decodeConfig(setAt(document, path, value)));
    });
  }

  /** Replaces the identity; `make` is given the present one. */
  replaceIdentity(make: (before: IdentityConfig) => Promise<IdentityConfig>): Promise<void> {
    return this.#change(async (document) => {
      const before = decodeConfig(document);
      const { PeerID, PrivKey } = await make({
        PeerID: valueAt(before, "Identity.PeerID"),
        PrivKey: valueAt(before, privateKeyPath),
      });
      const changed = setAt(setAt(document, "Identity.PeerID", PeerID), privateKeyPath, PrivKey);
      await this.#write(changed, decodeConfig(changed));
    });
  }

  /** The whole file without secrets, with sorted keys. */
  async show(): Promise<JsonObject> {
    return sorted(withoutSecrets(await this.#read())) as JsonObject;
  }

  /** Replaces the whole document, given as text; secrets stay. @throws NodeError */
  replace(text: string): Promise<void> {
    return this.#change(async (document) => {
      await this.#write(document, keepSecrets(decodeReplacement(text), document));
    });
  }

  /** Applies a profile; `dryRun` only tells what it would do. The file as it was is kept beside. @throws NodeError */
  async applyProfile(name: string, { dryRun = false } = {}): Promise<ConfigChange> {
    const profile = profileNamed(name);
    return this.#change(async (document) => {
      const before = decodeConfig(document);
      const typed = decodeConfig(await applyProfile(before, profile));
      if (!dryRun) {
        await copyFile(this.path, join(this.#folder, uniqueName(`config-pre-${name}-`)));
        await this.#write(document, typed);
      }
      const shown = (whole: Document) => sorted(withoutSecrets(whole)) as JsonObject;
      return { before: shown(before), after: shown(typed) };
    });
  }

  /**
   * Takes over what somebody makes of a copy of the file, secrets and all.
   *
   * @throws NodeError when it is no configuration then, or the file was changed by others meanwhile
   */
  async edit(change: (file: string) => Promise<void>): Promise<void> {
    await this.#queue;
    const before = await readFile(this.path, "utf8");
    const copy = join(this.#folder, uniqueName("config-edit-"));
    try {
      await writeFile(copy, before, { mode: fileMode });
      await change(copy);
      const document = await readDocument(copy);
      const typed = decodeConfig(document);
      readIdentity({ PeerID: valueAt(typed, "Identity.PeerID"), PrivKey: valueAt(typed, privateKeyPath) });
      await this.#change(async () => {
        if ((await readFile(this.path, "utf8")) !== before) {
          throw new NodeError("the config was changed while it was edited: edit it again");
        }
        await this.#write(document, typed);
      });
    } finally {
      await rm(copy, { force: true });
    }
  }

  async #read(): Promise<JsonObject> {
    await this.#queue;
    return readDocument(this.path);
  }

  /** Known keys as typed; of the rest, what stands at the top stays. */
  async #write(document: JsonObject, typed: Document): Promise<JsonObject> {
    requireSendableHeaders(typed, this.#typed);
    const whole = { ...document, ...typed };
    await writeAtomically(this.path, printJson(whole), fileMode);
    this.#typed = typed;
    return whole;
  }

  #change<T>(change: (document: JsonObject) => Promise<T>): Promise<T> {
    const done = this.#queue.then(async () => change(await readDocument(this.path)));
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

async function readDocument(path: string): Promise<JsonObject> {
  return parseDocument(await readFile(path, "utf8"));
}

/** The text of a configuration. @throws NodeError when it is none */
export function parseDocument(text: string): JsonObject {
  let document: unknown;
  try {
    document = parseJson(text);
  } catch (error) {
    const reason = text.trim() === "" ? "EOF" : (error as Error).message;
    throw new NodeError(`failure to decode config: ${reason}`, { cause: error });
  }
  // What is not an object is refused with the text of the decoder.
  return isObject(document) ? document : decodeConfig(document);
}

function shownAt(document: JsonObject, path: string): unknown {
  try {
    return sorted(getAt(document, path));
  } catch (error) {
    throw new NodeError(`failed to get config value: ${quote((error as Error).message)}`);
  }
}

/** The private key is restored, whatever was written. */
function changedAt(document: JsonObject, path: string, value: unknown): { changed: JsonObject; typed: Document } {
  try {
    const key = getAt(document, privateKeyPath);
    const changed = setAt(setAt(document, path, value), privateKeyPath, key);
    const typed = decodeConfig(changed);
    return { changed, typed: setAt(typed, privateKeyPath, key) };
  } catch (error) {
    throw new NodeError(`failed to set config value: ${(error as Error).message} (maybe use --json?)`);
  }
}

function decodeReplacement(text: string): Document {
  try {
    return decodeConfig(parseJson(text));
  } catch (error) {
    throw new NodeError("failed to decode file as config", { cause: error });
  }
}
