/**
 * The repo: the folder of a node with its configuration, its identity, and the lock that keeps
 * other processes out.
 */
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import { kuboRepoVersions, repoVersion } from "../../util/version.ts";
import { readPlainText } from "../plain_file.ts";
import { keepPrivate, PRIVATE_FOLDER } from "../private_files.ts";
import { writeAtomically } from "./atomic_file.ts";
import { ConfigFile, type ConfigOverrides, copyPrefix } from "./config.ts";
import { type Current, readConfig } from "./config_document.ts";
import { defaultStorePaths, diskSpec, resolveStorePaths, type StorePaths, storePaths } from "./datastore.ts";
import { createIdentity, type Identity, type IdentityConfig, readIdentity } from "./identity.ts";
import { setAt } from "./json.ts";
import { takeUnknown, treeOf } from "./json_tree.ts";
import { removeStaleClaims } from "./lease.ts";
import { type LockOptions, lockRepo, type RepoLock } from "./lock.ts";
import { applyProfile, profileNamed } from "./profiles.ts";
import { type Document, decodeConfig, initialConfig, valueAt } from "./schema.ts";

export interface RepoOptions {
  /** Profiles for a new repo, separated by commas; by default none, as in go-ipfs. */
  readonly profile?: string | undefined;
  /** Whether to make the repo when it does not exist; true by default. */
  readonly init?: boolean | undefined;
  /** Multiaddress for `Addresses.API` of a new repo. */
  readonly apiAddress?: string | undefined;
  /** The initial document of a new repo as text; it may contain the identity. */
  readonly document?: string | undefined;
  /** Identity of a new repo; by default the one in the document, or else a new Ed25519 key. */
  readonly identity?: IdentityConfig | undefined;
  /**
   * Values that replace those of the configuration while the repo is open. They are never written.
   */
  readonly overrides?: ConfigOverrides | undefined;
  /** Folder of blocks and metadata; by default they are in the repo, as its configuration says. */
  readonly data?: string | undefined;
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
}

export interface Repo {
  /** Absolute path of the folder. */
  readonly path: string;
  /** The repo version that this node reports: the version of the repos that it makes. */
  readonly version: string;
  /** The version in the file `version`, which is higher for a repo of Kubo or a copy of one. */
  readonly diskVersion: string;
  readonly config: ConfigFile;
  /** The identity when the repo was opened. */
  readonly identity: Identity;
  /** Absolute paths of blocks and metadata. */
  readonly stores: StorePaths;
  /** Paths of the stores in the repo itself, when `data` named another folder. */
  readonly repoStores: StorePaths | undefined;
  /** Whether this call made the repo. */
  readonly isNew: boolean;
  /**
   * Writes the file `api` with the address of the RPC API for clients. With a token, also writes
   * the file `api-token`, which only the owner can read. Undefined removes both.
   */
  announceApi(address: string | undefined, token?: string): Promise<void>;
  /**
   * Writes the file `gateway` with the URL of the gateway for clients, such as
   * `http://127.0.0.1:8080`. Undefined removes it.
   */
  announceGateway(url: string | undefined): Promise<void>;
  /**
   * Resolves when another process has taken over the repo. Nothing may be written there after that.
   */
  readonly lost: Promise<void>;
  /** Removes lock files of dead processes. Resolves with their names. */
  clean(): Promise<readonly string[]>;
  /** Removes the files `api` and `gateway`, and releases the lock. */
  close(): Promise<void>;
}

/**
 * Opens a folder as a repo, and makes the repo when it does not exist.
 *
 * @throws NodeError REPO_LOCKED; NodeError for a folder that cannot be written, an unsupported
 * version, a configuration or identity that cannot be read, or unsupported stores
 */
export async function openRepo(folder: string, options: RepoOptions = {}): Promise<Repo> {
  const path = resolve(folder);
  const data = resolve(options.data ?? path);
  const { init = true } = options;
  if (!init && !(await isRepo(path))) throw failure("REPO_NOT_FOUND", { path });
  const lost = Promise.withResolvers<void>();
  const { onNotice } = options;
  const lock = await lockFolders(data === path ? [path] : [path, data], { onNotice, onLost: lost.resolve });
  try {
    await removeStaleClaims(path);
    await refuseHalfCopied(path);
    const isNew = !(await isRepo(path));
    if (isNew) await makeRepo(path, options).catch((error) => nameCopies(path, error));
    const version = await requireVersion(path);
    return await openLocked({ path, data, lock, lost: lost.promise, isNew, version }, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Locks all of these folders or none. Missing folders are created. */
export async function lockFolders(folders: readonly string[], options: LockOptions = {}): Promise<RepoLock> {
  const locks: RepoLock[] = [];
  const release = async () => {
    for (const lock of locks.splice(0)) await lock.release();
  };
  try {
    for (const folder of folders) {
      await makeFolder(folder);
      locks.push(await lockRepo(folder, options));
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}

interface LockedFolder {
  readonly path: string;
  readonly data: string;
  readonly lock: RepoLock;
  readonly lost: Promise<void>;
  readonly isNew: boolean;
  readonly version: string;
}

async function openLocked(
  { path, data, lock, lost, isNew, version }: LockedFolder,
  { overrides }: RepoOptions,
): Promise<Repo> {
  const { config, identity, own } = await readRepo(path, version, overrides).catch((error) => nameCopies(path, error));
  await shutOut(path, data === path ? own : resolveStorePaths(data, defaultStorePaths));
  const announcement = announcementIn(path);
  await announcement.remove();
  return {
    path,
    version: repoVersion,
    diskVersion: version,
    config,
    identity,
    stores: data === path ? own : resolveStorePaths(data, defaultStorePaths),
    repoStores: data === path ? undefined : own,
    isNew,
    announceApi: (address, token) =>
      address === undefined ? announcement.removeApi() : announcement.write(address, token),
    announceGateway: (url) => announcement.writeGateway(url),
    lost,
    clean: () => removeStaleClaims(path),
    async close() {
      await announcement.remove();
      await lock.release();
    },
  };
}

async function readRepo(path: string, version: string, overrides: ConfigOverrides | undefined) {
  const config = await ConfigFile.open(path, overrides);
  const identity = readIdentity({ PeerID: config.value("Identity.PeerID"), PrivKey: config.value("Identity.PrivKey") });
  return { config, identity, own: resolveStorePaths(path, await requireStores(path, version, config)) };
}

/**
 * Adds the backups of the configuration to an error, because the node may still start with one of
 * them.
 */
async function nameCopies(path: string, error: unknown): Promise<never> {
  const copies = (await readdir(path)).filter((name) => name.startsWith(copyPrefix)).sort();
  if (copies.length === 0 || !NodeError.is(error)) throw error;
  const remedy = `${join(path, "config")} has backups next to it: ${copies.join(", ")}. Restore one of them`;
  throw reworded(error, `${error.message}. ${remedy}`);
}

/**
 * Removes the permissions that earlier versions gave to all users. A repo of go-ipfs keeps the
 * permissions that go-ipfs has set.
 */
async function shutOut(path: string, { kind, blocks, metadata }: StorePaths): Promise<void> {
  const folders = kind === "segments" ? [blocks, metadata] : [dirname(metadata)];
  for (const each of [...folders, join(path, "keystore")]) await keepPrivate(each);
}

/**
 * The files with the addresses of an open repo for other programs. A killed process leaves them
 * behind.
 */
function announcementIn(path: string) {
  const api = join(path, "api");
  const token = join(path, apiTokenFile);
  // Kubo writes this file as well. It promises a gateway for content.
  const gateway = join(path, "gateway");
  const remove = async (files: readonly string[]) => {
    for (const file of files) await rm(file, { force: true });
  };
  return {
    remove: () => remove([api, token, gateway]),
    removeApi: () => remove([api, token]),
    writeGateway: (url: string | undefined) =>
      url === undefined ? remove([gateway]) : writeAtomically(gateway, url, 0o644),
    async write(address: string, secret: string | undefined): Promise<void> {
      // The token is written first, so that a client that finds the address finds the token, too.
      await (secret === undefined ? remove([token]) : writeAtomically(token, secret, 0o600));
      await writeAtomically(api, address, 0o644);
    },
  };
}

/** Name of the file with the token that the command line uses while calls need one. */
const apiTokenFile = "api-token";

/** Whether a folder is a repo. The configuration is written last, so it decides. */
export async function isRepo(path: string): Promise<boolean> {
  try {
    return (await stat(join(path, "config"))).isFile();
  } catch {
    return false;
  }
}

async function makeFolder(path: string): Promise<void> {
  try {
    await makeFolders(path, PRIVATE_FOLDER);
  } catch (error) {
    throw failure(
      "REPO_NOT_WRITABLE",
      { reason: `the repo ${path} cannot be made: ${(error as Error).message}` },
      error,
    );
  }
}

/**
 * Creates a folder and missing parents with the same mode. Node's recursive mkdir never ends when
 * the parent exists but mkdir fails with ENOENT, as with automounts and `/proc`.
 */
async function makeFolders(path: string, mode: number): Promise<void> {
  const exists = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (exists) return;
  if (dirname(path) !== path) await makeFolders(dirname(path), mode);
  await mkdir(path, mode).catch((error: NodeJS.ErrnoException) => {
    // Another process created it first, or it is a file.
    if (error.code !== "EEXIST") throw error;
    return mkdir(path, { recursive: true, mode });
  });
}

async function makeRepo(path: string, options: RepoOptions): Promise<void> {
  await refuseLostConfig(path);
  await writeRepo(path, await newConfig(options));
}

/**
 * Folders of blocks, pins and keys in a repo. They get their content after the configuration is
 * written.
 */
const dataFolders = ["segments", "metadata", "blocks", "datastore", "modhost", "keystore"];

/**
 * Refuses to make a new configuration next to old data, which would silently give the node another
 * identity.
 * @throws NodeError
 */
async function refuseLostConfig(path: string): Promise<void> {
  const found: string[] = [];
  for (const name of dataFolders) {
    if ((await readdir(join(path, name)).catch(() => [])).length > 0) found.push(name);
  }
  if (found.length === 0) return;
  throw failure("REPO_INVALID", {
    reason:
      `${path} has the data of a repo (${found.join(", ")}) and no file \`config\`, which has its identity. Restore that file ` +
      "from a backup. For a new repo, name another folder, or move these folders away",
  });
}

/** The configuration of a new repo. */
export type NewConfig = Pick<Current, "typed" | "tree">;

/**
 * Makes the configuration of a new repo.
 * @throws NodeError for an invalid document, unknown profiles and unsupported stores
 */
export async function newConfig({
  profile = "",
  apiAddress,
  document,
  identity,
}: Pick<RepoOptions, "profile" | "apiAddress" | "document" | "identity"> = {}): Promise<NewConfig> {
  const given = document === undefined ? undefined : readConfig(document);
  let config = given?.typed ?? initialConfig();
  if (apiAddress !== undefined) config = setAt(config, "Addresses.API", apiAddress);
  for (const name of profile.split(",").filter((each) => each !== "")) {
    config = await applyProfile(config, profileNamed(name));
  }
  // Checked before anything is written, because a profile may name an unsupported store.
  const spec = valueAt(config, "Datastore.Spec") ?? {};
  storePaths(spec);
  const own = identity ?? identityIn(config) ?? (await createIdentity());
  const typed = decodeConfig({ ...config, Identity: own });
  const tree = treeOf(typed);
  return { typed, tree: given === undefined ? tree : takeUnknown(tree, given.tree, typed) };
}

/** Makes a folder a repo with this configuration; by default with this node's version. */
export async function writeRepo(path: string, { typed, tree }: NewConfig, version = repoVersion): Promise<void> {
  await mkdir(join(path, "keystore"), { recursive: true, mode: 0o700 });
  await writeAtomically(join(path, "datastore_spec"), diskSpec(valueAt(typed, "Datastore.Spec") ?? {}), 0o600);
  await writeAtomically(join(path, "version"), `${version}\n`, 0o600);
  await ConfigFile.create(path, tree);
}

/** A file that names the repo that is being copied to its folder. */
export const copyMark = "copied-from";

/** Returns the source of an incomplete copy; undefined for any other folder. */
export const halfCopied = (path: string): Promise<string | undefined> =>
  readPlainText(join(path, copyMark)).catch(() => undefined);

async function refuseHalfCopied(path: string): Promise<void> {
  const from = await halfCopied(path);
  if (from === undefined) return;
  throw failure("REPO_INVALID", {
    reason: `${path} is an incomplete copy of ${from}: complete it with \`modhost node migrate\`, or remove the folder`,
  });
}

/**
 * Returns the identity in a document; undefined when it has none.
 * @throws NodeError for a malformed one
 */
function identityIn(document: Document): IdentityConfig | undefined {
  const own = { PeerID: valueAt(document, "Identity.PeerID"), PrivKey: valueAt(document, "Identity.PrivKey") };
  if (own.PeerID === "" && (own.PrivKey ?? "") === "") return undefined;
  readIdentity(own);
  return own as IdentityConfig;
}

/**
 * Returns the version of the repo.
 * @throws NodeError for an unsupported one
 */
async function requireVersion(path: string): Promise<string> {
  const text = await readPlainText(join(path, "version")).catch(() => undefined);
  if (text === undefined)
    throw failure("REPO_VERSION_UNSUPPORTED", {
      reason: `the repo ${path} has no file \`version\`: it is too old for this node`,
    });
  const version = text.trim();
  if (!/^\d+$/.test(version)) throw failure("REPO_INVALID", { reason: "invalid data in repo version file" });
  if (version === repoVersion || kuboRepoVersions.includes(version)) return version;
  if (Number(version) > Number(kuboRepoVersions.at(-1))) {
    throw failure("REPO_VERSION_UNSUPPORTED", {
      reason:
        `Your programs version (${repoVersion}) is lower than your repos (${version}).\n` +
        `The repo ${path} was made by a later program: update this one, or use another folder.`,
    });
  }
  if (Number(version) > Number(repoVersion)) {
    throw failure("REPO_VERSION_UNSUPPORTED", {
      reason:
        `Your programs version (${repoVersion}) is lower than your repos (${version}).\n` +
        `Of later ones this node opens ${kuboRepoVersions.join(", ")}: let Kubo 0.43 migrate the repo ${path}, or use another folder.`,
    });
  }
  throw failure("REPO_VERSION_UNSUPPORTED", {
    reason:
      `ipfs repo needs migration: ${path} has version ${version}, this node needs ${repoVersion}. ` +
      "Migrate it with the program that made it, or use another folder.",
  });
}

async function requireStores(path: string, version: string, config: ConfigFile): Promise<StorePaths> {
  if (config.value("Datastore.Type") !== "" || config.value("Datastore.Path") !== "") {
    throw failure("DATASTORE_INVALID", { reason: "old style datatstore config detected" });
  }
  const spec = config.value("Datastore.Spec");
  if (spec === null)
    throw failure("DATASTORE_INVALID", { reason: "required Datastore.Spec entry missing from config file" });
  const wanted = diskSpec(spec);
  const found = (await readPlainText(join(path, "datastore_spec"))).trim();
  if (found !== wanted) {
    throw failure("DATASTORE_INVALID", {
      reason: `datastore configuration of '${found}' does not match what is on disk '${wanted}'`,
    });
  }
  return storePaths(spec, version);
}
