/** The repo: the folder of a node with its configuration, its identity, and the lock that keeps other processes out. */
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { NodeError } from "../../util/errors.ts";
import { repoVersion, repoVersionsOfToday } from "../../util/version.ts";
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
  /** Profiles for a new repo, separated by commas; without any it is as the reference makes it. */
  readonly profile?: string | undefined;
  /** Make the repo when there is none. Default true. */
  readonly init?: boolean | undefined;
  /** Multiaddress for `Addresses.API` of a new repo. */
  readonly apiAddress?: string | undefined;
  /** The document that a new repo begins with, as text; it may contain the identity. */
  readonly document?: string | undefined;
  /** Identity of a new repo; by default that of the document, or else a new Ed25519 key. */
  readonly identity?: IdentityConfig | undefined;
  /** Values that replace those of the configuration while the repo is open; they are never written. */
  readonly overrides?: ConfigOverrides | undefined;
  /** Folder for blocks and metadata; by default they are in the repo, as its configuration says. */
  readonly data?: string | undefined;
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
}

export interface Repo {
  /** Absolute path of the folder. */
  readonly path: string;
  /** As this node tells it: that of the repos that it makes. */
  readonly version: string;
  /** As its file `version` says: later for a repo of Kubo, and for a copy of one. */
  readonly diskVersion: string;
  readonly config: ConfigFile;
  /** As it was when the repo was opened. */
  readonly identity: Identity;
  /** Where blocks and metadata are; absolute paths. */
  readonly stores: StorePaths;
  /** Where the repo itself keeps them, when `data` named another folder. */
  readonly repoStores: StorePaths | undefined;
  /** The repo was made by this call. */
  readonly isNew: boolean;
  /**
   * Writes the file `api`, by which clients find the RPC, and where a token is given the file `api-token`, which only the
   * owner reads; undefined removes both.
   */
  announceApi(address: string | undefined, token?: string): Promise<void>;
  /** Writes the file `gateway`, by which clients find content over HTTP, such as `http://127.0.0.1:8080`; undefined removes it. */
  announceGateway(url: string | undefined): Promise<void>;
  /** Resolves when another process has taken the repo over: nothing may be written there any more. */
  readonly lost: Promise<void>;
  /** Removes lock files of dead processes; gives their names. */
  clean(): Promise<readonly string[]>;
  /** Removes the files `api` and `gateway`, and releases the lock. */
  close(): Promise<void>;
}

/**
 * Opens a folder as a repo, and makes the repo when there is none.
 *
 * @throws NodeError REPO_LOCKED; for a folder that cannot be written to, another version, a configuration or an
 * identity that cannot be read, stores that this node does not have
 */
export async function openRepo(folder: string, options: RepoOptions = {}): Promise<Repo> {
  const path = resolve(folder);
  const data = resolve(options.data ?? path);
  const { init = true } = options;
  if (!init && !(await isRepo(path))) throw new NodeError(`no IPFS repo found in ${path}.\nplease run: 'ipfs init'`);
  const lost = Promise.withResolvers<void>();
  const { onNotice } = options;
  const lock = await lockFolders(data === path ? [path] : [path, data], { onNotice, onLost: lost.resolve });
  try {
    await removeStaleClaims(path);
    await refuseHalfCopied(path);
    const isNew = !(await isRepo(path));
    if (isNew) await makeRepo(path, options);
    const version = await requireVersion(path);
    return await openLocked({ path, data, lock, lost: lost.promise, isNew, version }, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Locks all of them or none; missing folders are made. */
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
    announceGateway: (url) => announcement.tellGateway(url),
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

/** Tells of the copies of the configuration with which the node may still start. */
async function nameCopies(path: string, error: unknown): Promise<never> {
  const copies = (await readdir(path)).filter((name) => name.startsWith(copyPrefix)).sort();
  if (copies.length === 0 || !NodeError.is(error)) throw error;
  const remedy = `${join(path, "config")} as it was is in ${copies.join(", ")} beside it: put it back`;
  throw new NodeError(`${error.message}. ${remedy}`, { cause: error });
}

/** Earlier versions left blocks and metadata to all users. A repo of go-ipfs stays as that program has made it. */
async function shutOut(path: string, { kind, blocks, metadata }: StorePaths): Promise<void> {
  const folders = kind === "segments" ? [blocks, metadata] : [dirname(metadata)];
  for (const each of [...folders, join(path, "keystore")]) await keepPrivate(each);
}

/** The files by which other programs find the RPC of a repo that is open; a killed process leaves them behind. */
function announcementIn(path: string) {
  const [api, token] = [join(path, "api"), join(path, apiTokenFile)];
  // As later versions of the reference write it. It promises a gateway for content.
  const gateway = join(path, "gateway");
  const remove = async (files: readonly string[]) => {
    for (const file of files) await rm(file, { force: true });
  };
  return {
    remove: () => remove([api, token, gateway]),
    removeApi: () => remove([api, token]),
    tellGateway: (url: string | undefined) =>
      url === undefined ? remove([gateway]) : writeAtomically(gateway, url, 0o644),
    async write(address: string, secret: string | undefined): Promise<void> {
      // The token comes first: whoever finds the address finds the token, too.
      await (secret === undefined ? remove([token]) : writeAtomically(token, secret, 0o600));
      await writeAtomically(api, address, 0o644);
    },
  };
}

/** Name of the file with the token that the command line presents while calls need one. */
const apiTokenFile = "api-token";

/** A folder with a configuration is a repo: that file is written last. */
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
    throw new NodeError(`the repo ${path} cannot be made: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Makes missing parents, which are as private. Node's recursive mkdir never ends where the parent exists but mkdir fails with ENOENT:
 * automounts, `/proc`.
 */
async function makeFolders(path: string, mode: number): Promise<void> {
  const exists = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (exists) return;
  if (dirname(path) !== path) await makeFolders(dirname(path), mode);
  await mkdir(path, mode).catch((error: NodeJS.ErrnoException) => {
    // Another process was faster, or it is a file.
    if (error.code !== "EEXIST") throw error;
    return mkdir(path, { recursive: true, mode });
  });
}

const makeRepo = async (path: string, options: RepoOptions): Promise<void> => writeRepo(path, await newConfig(options));

/** The configuration of a new repo. */
export type NewConfig = Pick<Current, "typed" | "tree">;

/** @throws NodeError for a document that is none, profiles and stores that there are not */
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
  // Checked before anything is written: a profile may name a store that this node does not have.
  const spec = valueAt(config, "Datastore.Spec") ?? {};
  storePaths(spec);
  const own = identity ?? identityIn(config) ?? (await createIdentity());
  const typed = decodeConfig({ ...config, Identity: own });
  const tree = treeOf(typed);
  return { typed, tree: given === undefined ? tree : takeUnknown(tree, given.tree, typed) };
}

/** Makes a folder a repo with this configuration, by default of this node's version. */
export async function writeRepo(path: string, { typed, tree }: NewConfig, version = repoVersion): Promise<void> {
  await mkdir(join(path, "keystore"), { recursive: true, mode: 0o700 });
  await writeAtomically(join(path, "datastore_spec"), diskSpec(valueAt(typed, "Datastore.Spec") ?? {}), 0o600);
  await writeAtomically(join(path, "version"), `${version}\n`, 0o600);
  await ConfigFile.create(path, tree);
}

/** A file that names the repo which is being copied into its folder. */
export const copyMark = "copied-from";

/** What a folder is half of a copy of; undefined for any other. */
export const halfCopied = (path: string): Promise<string | undefined> =>
  readFile(join(path, copyMark), "utf8").catch(() => undefined);

async function refuseHalfCopied(path: string): Promise<void> {
  const from = await halfCopied(path);
  if (from === undefined) return;
  throw new NodeError(
    `${path} is half of a copy of ${from}: let \`modhost node migrate\` copy the rest, or remove the folder`,
  );
}

/** Undefined when the document has none. @throws NodeError for a malformed one */
function identityIn(document: Document): IdentityConfig | undefined {
  const own = { PeerID: valueAt(document, "Identity.PeerID"), PrivKey: valueAt(document, "Identity.PrivKey") };
  if (own.PeerID === "" && (own.PrivKey ?? "") === "") return undefined;
  readIdentity(own);
  return own as IdentityConfig;
}

/** The version of the repo. @throws NodeError for one that is not opened */
async function requireVersion(path: string): Promise<string> {
  const text = await readFile(join(path, "version"), "utf8").catch(() => undefined);
  if (text === undefined) throw new NodeError(`the repo ${path} has no file \`version\`: it is too old for this node`);
  const version = text.trim();
  if (!/^\d+$/.test(version)) throw new NodeError("invalid data in repo version file");
  if (version === repoVersion || repoVersionsOfToday.includes(version)) return version;
  if (Number(version) > Number(repoVersionsOfToday.at(-1))) {
    throw new NodeError(
      `Your programs version (${repoVersion}) is lower than your repos (${version}).\n` +
        `The repo ${path} was made by a later program: update this one, or use another folder.`,
    );
  }
  if (Number(version) > Number(repoVersion)) {
    throw new NodeError(
      `Your programs version (${repoVersion}) is lower than your repos (${version}).\n` +
        `Of later ones this node opens ${repoVersionsOfToday.join(", ")}: let Kubo 0.43 migrate the repo ${path}, or use another folder.`,
    );
  }
  throw new NodeError(
    `ipfs repo needs migration: ${path} has version ${version}, this node needs ${repoVersion}. ` +
      "Migrate it with the program that made it, or use another folder.",
  );
}

async function requireStores(path: string, version: string, config: ConfigFile): Promise<StorePaths> {
  if (config.value("Datastore.Type") !== "" || config.value("Datastore.Path") !== "") {
    throw new NodeError("old style datatstore config detected");
  }
  const spec = config.value("Datastore.Spec");
  if (spec === null) throw new NodeError("required Datastore.Spec entry missing from config file");
  const wanted = diskSpec(spec);
  const found = (await readFile(join(path, "datastore_spec"), "utf8")).trim();
  if (found !== wanted) {
    throw new NodeError(`datastore configuration of '${found}' does not match what is on disk '${wanted}'`);
  }
  return storePaths(spec, version);
}
