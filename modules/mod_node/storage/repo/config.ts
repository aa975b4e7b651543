/**
 * The configuration file. It is read again for every call, written atomically, and changed by one
 * call at a time.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import { readPlainFile, readPlainText } from "../plain_file.ts";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { AUTO, type AutoValues, autoKeys, autoValues, withoutAuto } from "./auto_values.ts";
import { AutoConfCache } from "./autoconf/cache.ts";
import type { AutoConfDocument } from "./autoconf/document.ts";
import {
  type Current,
  changedAt,
  changedTo,
  decodeReplacement,
  identityOf,
  JsonText,
  readConfig,
  readCurrent,
  requireOwnId,
  requireStart,
  shownAt,
  withIdentityOf,
} from "./config_document.ts";
import { requireSendableHeaders } from "./header_fault.ts";
import { type IdentityConfig, readIdentity } from "./identity.ts";
import { withNulls } from "./ignored_keys.ts";
import { type ApplyConfig, type ConfigApplied, ConfigInForce, type WaitingKey } from "./in_force.ts";
import { type ConfigRules, type JsonObject, setAt, sorted } from "./json.ts";
import { type JsonTree, plainOf, printTree, takeUnknown, treeOf } from "./json_tree.ts";
import { type LaterSettings, laterSettings } from "./later_keys.ts";
import { applyProfile, profileNamed } from "./profiles.ts";
import { type ConfigPath, type ConfigValue, configKeys, type Document, decodeConfig, valueAt } from "./schema.ts";
import { keepSecrets, privateKeyPath, requireShown, withoutSecrets } from "./secrets.ts";

const fileMode = 0o600;
/** The default of `AutoConf.URL`, as in Kubo. */
export const AUTO_CONF_URL = "https://conf.ipfs-mainnet.org/autoconf.json";
/** Prefix of the names of backups that are made before a change. */
export const copyPrefix = "config-pre-";

/** Whole documents before and after a change, without secrets. */
export interface ConfigChange {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** Values that replace those of the file. */
export type ConfigOverrides = { readonly [P in ConfigPath]?: ConfigValue<P> };

/** How values are shown. */
export interface ConfigReading {
  /** With the rules of 0.43, missing keys of `Import` are null. */
  readonly rules?: ConfigRules | undefined;
  /** Whether `auto` is replaced by its meaning. */
  readonly expandAuto?: boolean | undefined;
}

function read(document: JsonObject, auto: () => AutoValues, { rules, expandAuto }: ConfigReading): JsonObject {
  const shown = rules === "0.43" ? withNulls(document, Object.keys(configKeys)) : document;
  return expandAuto === true ? withoutAuto(shown, auto()) : shown;
}

export class ConfigFile {
  readonly path: string;
  readonly #folder: string;
  readonly #overrides: ConfigOverrides;
  readonly #inForce: ConfigInForce;
  #typed: Document;
  #later: LaterSettings;
  readonly #started: LaterSettings;
  #autoConf: AutoConfDocument | undefined;
  /** The text of the file when this process last read or wrote it. */
  #text: string;
  /** Settles when the last change has ended. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, text: string, overrides: ConfigOverrides) {
    const { document, typed } = readConfig(text);
    this.path = join(folder, "config");
    this.#folder = folder;
    this.#overrides = overrides;
    this.#text = text;
    this.#typed = typed;
    this.#later = laterSettings(document);
    this.#started = this.#later;
    this.#inForce = new ConfigInForce(
      (path) => this.value(path),
      (path) => this.#later.names.get(path) ?? path,
      () => this.#waitingSwitches(),
    );
  }

  /**
   * Reads the configuration of a folder.
   * @throws NodeError that names the file when it is not a configuration
   */
  static async open(folder: string, overrides: ConfigOverrides = {}): Promise<ConfigFile> {
    const path = join(folder, "config");
    try {
      const config = new ConfigFile(folder, await readPlainText(path), overrides);
      await config.readAutoConf();
      return config;
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw reworded(error, `${error.message}: fix ${path}, or restore a backup of it`);
    }
  }

  /** Writes the document of a new repo. */
  static create(folder: string, tree: JsonTree): Promise<void> {
    return writeAtomically(join(folder, "config"), printTree(tree), fileMode);
  }

  /** The settings for choices that version 0.9 makes by flags at startup. */
  get switches(): Pick<LaterSettings, "pubsub" | "namesOverPubsub"> {
    return this.#later;
  }

  /**
   * Returns a value as this process last read or wrote it. A key of a later version has priority
   * over the older one.
   */
  value<P extends ConfigPath>(path: P): ConfigValue<P> {
    const override = this.#overrides[path] ?? this.#later.overrides[path];
    return override === undefined ? valueAt(this.#typed, path) : (override as ConfigValue<P>);
  }

  /** The meaning of `auto`. */
  get auto(): AutoValues {
    return autoValues(this.#autoConf, this.value("Routing.Type"));
  }

  /** Whether any value contains `auto`. */
  get saysAuto(): boolean {
    return autoKeys.some((path) => Object.values(this.value(path) ?? {}).includes(AUTO));
  }

  /** The cache of documents from the current `AutoConf.URL`. */
  get autoConfCache(): AutoConfCache {
    return new AutoConfCache(this.#folder, this.value("AutoConf.URL") || AUTO_CONF_URL);
  }

  /**
   * Applies the newest cached document. Without one, or when `AutoConf` is disabled, the built-in
   * values apply.
   */
  async readAutoConf(): Promise<void> {
    const isWanted = this.saysAuto && this.value("AutoConf.Enabled") !== false;
    this.#autoConf = isWanted ? (await this.autoConfCache.read())?.document : undefined;
  }

  /** Passes changes of any of these keys to `apply`, until the returned function is called. */
  follow(paths: readonly ConfigPath[], apply: ApplyConfig): () => void {
    return this.#inForce.follow(paths, apply);
  }

  /** Calls `listener` after each change, until the returned function is called. */
  listen(listener: (change: ConfigApplied) => void): () => void {
    return this.#inForce.listen(listener);
  }

  /** Values in the file that are not applied yet. */
  get waiting(): readonly WaitingKey[] {
    return this.#inForce.waiting;
  }

  /** Keys of later versions that change a choice made at startup and wait for the next start. */
  #waitingSwitches(): readonly string[] {
    const { pubsub, namesOverPubsub } = this.#later;
    return [
      ...(pubsub === this.#started.pubsub ? [] : ["Pubsub.Enabled"]),
      ...(namesOverPubsub === this.#started.namesOverPubsub ? [] : ["Ipns.UsePubsub"]),
    ];
  }

  /** Records that these values have just been read by their users and are applied. */
  take(isTaken: (path: ConfigPath) => boolean): void {
    this.#inForce.take(isTaken);
  }

  /**
   * Reads the file again, which others may have changed, and applies new values. Values that could
   * not be applied before are tried again.
   *
   * @throws NodeError when the file is not a configuration; the current values then stay
   */
  reread(): Promise<ConfigApplied> {
    return this.#queued(async () => {
      const text = await readPlainText(this.path);
      if (text !== this.#text) {
        const read = readConfig(text);
        // A file that is being written may contain `{}` or `null` for a moment. A new identity
        // takes effect at the next start.
        if (identityOf(read.typed).PrivKey === "" && identityOf(this.#typed).PrivKey !== "") {
          throw failure("IDENTITY_INVALID", { reason: "identity was not set in config" });
        }
        this.#take(read, text);
      }
      await this.readAutoConf();
      return this.#inForce.apply();
    });
  }

  /**
   * Returns the value of the file at a dotted path.
   * @throws NodeError with the text of the command `config`
   */
  async get(path: string, reading: ConfigReading = {}): Promise<unknown> {
    requireShown(path);
    return shownAt(
      read((await this.#read()).document, () => this.auto, reading),
      path,
      reading.rules,
    );
  }

  /**
   * Writes a value and returns the value afterwards. `value` is called only if the path may be
   * written. It returns the value, or its JSON, whose formatting is then preserved.
   *
   * @throws NodeError with the text of the command `config`
   */
  async set(path: string, value: () => unknown | JsonText, rules: ConfigRules = "0.9"): Promise<unknown> {
    requireShown(path);
    const given = value();
    return this.#change(async (current) => {
      const wanted = given instanceof JsonText ? given.tree : treeOf(given);
      const changed = changedAt(current, path, wanted, rules);
      if (rules === "0.43") requireOwnId(changed.typed);
      await this.#write(changed);
      return shownAt(changed.document, path, rules);
    });
  }

  /** Changes a known key on behalf of the node. The key may be one that the API does not show. */
  update<P extends ConfigPath>(path: P, change: (before: ConfigValue<P>) => ConfigValue<P>): Promise<void> {
    return this.#change(async (current) => {
      const { typed } = current;
      await this.#write(changedTo(current, setAt(typed, path, change(valueAt(typed, path)))));
    });
  }

  /** Replaces the identity. `make` receives the current one. */
  replaceIdentity(make: (before: IdentityConfig) => Promise<IdentityConfig>): Promise<void> {
    return this.#change(async (current) => {
      const { PeerID, PrivKey } = await make(identityOf(current.typed));
      const typed = setAt(setAt(current.typed, "Identity.PeerID", PeerID), privateKeyPath, PrivKey);
      await this.#write(changedTo(current, typed));
    });
  }

  /** Returns the whole file without secrets, with sorted keys. */
  async show(reading: ConfigReading = {}): Promise<JsonObject> {
    return sorted(withoutSecrets(read((await this.#read()).document, () => this.auto, reading))) as JsonObject;
  }

  /**
   * Replaces the whole document with the given text. Secrets stay. Unknown keys stay, too, unless
   * the new document has them. A single backup of the previous file is made.
   *
   * With the rules of 0.43, the identity stays as well.
   *
   * @throws NodeError, also for a document with which the node would not start
   */
  replace(text: string, rules: ConfigRules = "0.9"): Promise<void> {
    return this.#change(async (current) => {
      const { tree, typed: given } = decodeReplacement(
        rules === "0.43" ? withIdentityOf(current.document, text) : text,
      );
      const typed = keepSecrets(given, current.document);
      requireStart(current.typed, typed);
      const changed = changedTo(current, typed);
      const whole = takeUnknown(changed.tree, tree, typed);
      await this.#keepCopy(`${copyPrefix}replace`);
      await this.#write({ tree: whole, document: plainOf(whole) as JsonObject, typed });
    });
  }

  /**
   * Applies a profile after making a backup. With `dryRun`, only returns the change.
   * @throws NodeError
   */
  async applyProfile(name: string, { dryRun = false } = {}): Promise<ConfigChange> {
    const profile = profileNamed(name);
    return this.#change(async (current) => {
      const { typed: before } = current;
      const typed = decodeConfig(await applyProfile(before, profile));
      if (!dryRun) {
        await this.#keepCopy(uniqueName(`${copyPrefix}${name}-`));
        await this.#write(changedTo(current, typed));
      }
      const shown = (whole: Document) => sorted(withoutSecrets(whole)) as JsonObject;
      return { before: shown(before), after: shown(typed) };
    });
  }

  /**
   * Lets `change` edit a copy of the file, including secrets, and adopts the result.
   *
   * @throws NodeError when the result is not a configuration, or others changed the file in the
   * meantime
   */
  async edit(change: (file: string) => Promise<void>): Promise<void> {
    await this.#queue;
    const before = await readPlainText(this.path);
    const copy = join(this.#folder, uniqueName("config-edit-"));
    try {
      await writeFile(copy, before, { mode: fileMode });
      await change(copy);
      const edited = await readCurrent(copy);
      readIdentity(identityOf(edited.typed));
      await this.#change(async () => {
        if ((await readPlainText(this.path)) !== before) {
          throw failure("CONFIG_CHANGED");
        }
        await this.#write(edited);
      });
    } finally {
      await rm(copy, { force: true });
    }
  }

  async #read(): Promise<Current> {
    await this.#queue;
    return readCurrent(this.path);
  }

  async #keepCopy(name: string): Promise<void> {
    await writeAtomically(join(this.#folder, name), await readPlainFile(this.path), fileMode);
  }

  async #write({ tree, document, typed }: Current): Promise<void> {
    requireSendableHeaders(typed, this.#typed);
    const text = printTree(tree);
    // Decoded before the file is written, because a value that fails here could not be read at the
    // next start.
    const later = laterSettings(document);
    await writeAtomically(this.path, text, fileMode);
    this.#typed = typed;
    this.#later = later;
    this.#text = text;
    await this.readAutoConf();
    await this.#inForce.apply();
  }

  #take({ document, typed }: Current, text: string): void {
    this.#later = laterSettings(document);
    this.#typed = typed;
    this.#text = text;
  }

  #change<T>(change: (current: Current) => Promise<T>): Promise<T> {
    return this.#queued(async () => change(await readCurrent(this.path)));
  }

  #queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}
