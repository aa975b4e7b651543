/** The configuration file: read anew for every call, written atomically, one change at a time. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NodeError } from "../../util/errors.ts";
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
  joinedWith,
  readConfig,
  readCurrent,
  requireOwnId,
  requireStart,
  shownAt,
} from "./config_document.ts";
import { requireSendableHeaders } from "./header_fault.ts";
import { type IdentityConfig, readIdentity } from "./identity.ts";
import { type ApplyConfig, type ConfigApplied, ConfigInForce, type WaitingKey } from "./in_force.ts";
import { type ConfigRules, type JsonObject, setAt, sorted } from "./json.ts";
import { type JsonTree, plainOf, printTree, takeUnknown, treeOf } from "./json_tree.ts";
import { withNulls } from "./kept_keys.ts";
import { type LaterSettings, laterSettings } from "./later_keys.ts";
import { applyProfile, profileNamed } from "./profiles.ts";
import { type ConfigPath, type ConfigValue, configKeys, type Document, decodeConfig, valueAt } from "./schema.ts";
import { keepSecrets, privateKeyPath, requireShown, withoutSecrets } from "./secrets.ts";

const fileMode = 0o600;
/** Where the word `auto` is looked up unless `AutoConf.URL` says another place, as in Kubo. */
export const AUTO_CONF_URL = "https://conf.ipfs-mainnet.org/autoconf.json";
/** Of the names of files with the document as it was before a change. */
export const copyPrefix = "config-pre-";

/** Whole documents before and after, without secrets. */
export interface ConfigChange {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** Values that replace those of the file. */
export type ConfigOverrides = { readonly [P in ConfigPath]?: ConfigValue<P> };

/** How values are shown. */
export interface ConfigReading {
  /** By those of 0.43 keys of `Import` that are not there are null. */
  readonly rules?: ConfigRules | undefined;
  /** What the word `auto` stands for is in its place. */
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
  /** The file as it was last read or written by this process. */
  #text: string;
  /** Ends when the last change has ended. */
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

  /** @throws NodeError that names the file, when it is not a configuration */
  static async open(folder: string, overrides: ConfigOverrides = {}): Promise<ConfigFile> {
    const path = join(folder, "config");
    try {
      const config = new ConfigFile(folder, await readFile(path, "utf8"), overrides);
      await config.readAutoConf();
      return config;
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw new NodeError(`${error.message}: mend ${path}, or put back a copy of it`, { cause: error });
    }
  }

  /** Writes the document of a new repo. */
  static create(folder: string, tree: JsonTree): Promise<void> {
    return writeAtomically(join(folder, "config"), printTree(tree), fileMode);
  }

  /** What the config says of choices that version 0.9 leaves to whoever starts the node. */
  get switches(): Pick<LaterSettings, "pubsub" | "namesOverPubsub"> {
    return this.#later;
  }

  /** A value as this process has last read or written it; a key of a later version goes before the older one. */
  value<P extends ConfigPath>(path: P): ConfigValue<P> {
    const override = this.#overrides[path] ?? this.#later.overrides[path];
    return override === undefined ? valueAt(this.#typed, path) : (override as ConfigValue<P>);
  }

  /** What the word `auto` stands for. */
  get auto(): AutoValues {
    return autoValues(this.#autoConf, this.value("Routing.Type"));
  }

  /** Whether it stands anywhere. */
  get saysAuto(): boolean {
    return autoKeys.some((path) => Object.values(this.value(path) ?? {}).includes(AUTO));
  }

  /** The documents that were fetched from `AutoConf.URL` as it is now. */
  get autoConfCache(): AutoConfCache {
    return new AutoConfCache(this.#folder, this.value("AutoConf.URL") || AUTO_CONF_URL);
  }

  /** Goes by the newest of these documents; by what is built in without any, and where `AutoConf` is off. */
  async readAutoConf(): Promise<void> {
    const isWanted = this.saysAuto && this.value("AutoConf.Enabled") !== false;
    this.#autoConf = isWanted ? (await this.autoConfCache.read())?.document : undefined;
  }

  /** Hands changes of any of these keys to `apply`, until the function that this gives is called. */
  follow(paths: readonly ConfigPath[], apply: ApplyConfig): () => void {
    return this.#inForce.follow(paths, apply);
  }

  /** Tells of each change when it is over, until the function that this gives is called. */
  listen(hear: (change: ConfigApplied) => void): () => void {
    return this.#inForce.listen(hear);
  }

  /** Values that are in the file and not in force. */
  get waiting(): readonly WaitingKey[] {
    return this.#inForce.waiting;
  }

  /** What waits of the choices of whoever starts the node, by the keys of later versions. */
  #waitingSwitches(): readonly string[] {
    const { pubsub, namesOverPubsub } = this.#later;
    return [
      ...(pubsub === this.#started.pubsub ? [] : ["Pubsub.Enabled"]),
      ...(namesOverPubsub === this.#started.namesOverPubsub ? [] : ["Ipns.UsePubsub"]),
    ];
  }

  /** These values have just been read by those who use them: they are in force. */
  take(isTaken: (path: ConfigPath) => boolean): void {
    this.#inForce.take(isTaken);
  }

  /**
   * Reads the file again, which others may have changed, and puts in force what is new; what could not be applied
   * before is tried again.
   *
   * @throws NodeError when it is no configuration: what was in force stays so
   */
  reread(): Promise<ConfigApplied> {
    return this.#queued(async () => {
      const text = await readFile(this.path, "utf8");
      if (text !== this.#text) this.#take(readConfig(text), text);
      await this.readAutoConf();
      return this.#inForce.apply();
    });
  }

  /** The value of the file at a dotted path. @throws NodeError as the command `config` */
  async get(path: string, reading: ConfigReading = {}): Promise<unknown> {
    requireShown(path);
    return shownAt(
      read((await this.#read()).document, () => this.auto, reading),
      path,
      reading.rules,
    );
  }

  /**
   * Writes a value and returns what is there afterwards. `value` is called only if the path may be written; it gives the
   * value, or its JSON, which is kept in that form.
   *
   * @throws NodeError as the command `config`
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

  /** Changes one known key on behalf of the node; it may touch keys that the API does not show. */
  update<P extends ConfigPath>(path: P, change: (before: ConfigValue<P>) => ConfigValue<P>): Promise<void> {
    return this.#change(async (current) => {
      const { typed } = current;
      await this.#write(changedTo(current, setAt(typed, path, change(valueAt(typed, path)))));
    });
  }

  /** Replaces the identity; `make` is given the present one. */
  replaceIdentity(make: (before: IdentityConfig) => Promise<IdentityConfig>): Promise<void> {
    return this.#change(async (current) => {
      const { PeerID, PrivKey } = await make(identityOf(current.typed));
      const typed = setAt(setAt(current.typed, "Identity.PeerID", PeerID), privateKeyPath, PrivKey);
      await this.#write(changedTo(current, typed));
    });
  }

  /** The whole file without secrets, with sorted keys. */
  async show(reading: ConfigReading = {}): Promise<JsonObject> {
    return sorted(withoutSecrets(read((await this.#read()).document, () => this.auto, reading))) as JsonObject;
  }

  /**
   * Replaces the whole document, given as text. Secrets stay, and keys that this node does not know, where the new
   * document says nothing of them. The file as it was is kept beside, once.
   *
   * By the rules of 0.43 everything stays that the new document does not say.
   *
   * @throws NodeError also for a document with which the node would not start again
   */
  replace(text: string, rules: ConfigRules = "0.9"): Promise<void> {
    return this.#change(async (current) => {
      const { tree, typed: given } = decodeReplacement(rules === "0.43" ? joinedWith(current.document, text) : text);
      const typed = keepSecrets(given, current.document);
      requireStart(current.typed, typed);
      const changed = changedTo(current, typed);
      const whole = takeUnknown(changed.tree, tree, typed);
      await this.#keepCopy(`${copyPrefix}replace`);
      await this.#write({ tree: whole, document: plainOf(whole) as JsonObject, typed });
    });
  }

  /** Applies a profile; `dryRun` only tells what it would do. The file as it was is kept beside. @throws NodeError */
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
      const edited = await readCurrent(copy);
      readIdentity(identityOf(edited.typed));
      await this.#change(async () => {
        if ((await readFile(this.path, "utf8")) !== before) {
          throw new NodeError("the config was changed while it was edited: edit it again");
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
    await writeAtomically(join(this.#folder, name), await readFile(this.path), fileMode);
  }

  async #write({ tree, document, typed }: Current): Promise<void> {
    requireSendableHeaders(typed, this.#typed);
    const text = printTree(tree);
    // Before it is written: what is refused here would not be read at the next start.
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
