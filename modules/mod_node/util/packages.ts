/**
 * Lists the packages that this program consists of: itself, those that are bundled into it, and
 * those that are installed with it.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** The fields of a CycloneDX document that are used here. */
interface Bom {
  readonly components: readonly {
    readonly group?: string;
    readonly name: string;
    readonly version: string;
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  }[];
}

export interface InstalledPackage {
  readonly name: string;
  readonly version: string;
  /** Integrity from a lock file; empty if no lock file lists the package. */
  readonly integrity: string;
}

const ownRoot = dirname(createRequire(import.meta.url).resolve("modhost/package.json"));

let own: Promise<Manifest> | undefined;

/** Returns the manifest of modhost. */
export function ownPackage(): Promise<Manifest> {
  own ??= manifestIn(ownRoot).then((found) => found ?? Promise.reject(new Error(`${ownRoot} has no package.json`)));
  return own;
}

/**
 * Returns modhost itself, then the packages that it contains and those that it needs, by name and
 * version. In a clone, this includes the packages that the tests need.
 */
export async function installedPackages(): Promise<readonly InstalledPackage[]> {
  const contained = await containedPackages();
  const locks = new Locks();
  const manifests = new Manifests();
  const found = new Map<string, InstalledPackage>();
  const waiting: string[] = [ownRoot];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const manifest = found.has(folder) ? undefined : await manifests.in(folder);
    if (manifest === undefined) continue;
    const { name, version, dependencies, optionalDependencies, devDependencies } = manifest;
    found.set(folder, { name, version, integrity: await locks.integrityOf(folder) });
    const isClone = folder === ownRoot && contained === undefined;
    const needed = Object.keys({ ...dependencies, ...optionalDependencies, ...(isClone && devDependencies) });
    const folders = await Promise.all(needed.map((each) => manifests.folderOf(each, folder)));
    waiting.push(...folders.filter((each) => each !== undefined));
  }
  const [first, ...rest] = found.values();
  const key = ({ name, version }: InstalledPackage) => `${name}@${version}`;
  rest.push(...(contained ?? []));
  return [first as InstalledPackage, ...rest.sort((one, other) => (key(one) < key(other) ? -1 : 1))];
}

/**
 * Returns the packages that the build has bundled; undefined in a clone, which runs from sources.
 */
async function containedPackages(): Promise<readonly InstalledPackage[] | undefined> {
  if (import.meta.url.endsWith(".ts")) return undefined;
  const { components } = JSON.parse(await readFile(join(ownRoot, "dist/sbom.cdx.json"), "utf8")) as Bom;
  return components.map(({ group, name, version, hashes: [hash] = [] }) => ({
    name: group === undefined ? name : `${group}/${name}`,
    version,
    integrity:
      hash === undefined
        ? ""
        : `${hash.alg.replace("-", "").toLowerCase()}-${Buffer.from(hash.content, "hex").toString("base64")}`,
  }));
}

async function manifestIn(folder: string): Promise<Manifest | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}

/** Reads each manifest once. */
class Manifests {
  readonly #read = new Map<string, Promise<Manifest | undefined>>();

  in(folder: string): Promise<Manifest | undefined> {
    const known = this.#read.get(folder) ?? manifestIn(folder);
    this.#read.set(folder, known);
    return known;
  }

  /**
   * Finds the folder of a package as Node does, in each `node_modules` upwards. Undefined if an
   * optional package is not installed.
   */
  async folderOf(name: string, from: string): Promise<string | undefined> {
    for (const above of upwards(from)) {
      const folder = join(above, "node_modules", name);
      if ((await this.in(folder)) !== undefined) return folder;
    }
    return undefined;
  }
}

function* upwards(from: string): Generator<string> {
  for (let at = from, before = ""; at !== before; before = at, at = dirname(at)) yield at;
}

type Locked = Readonly<Record<string, { readonly integrity?: string }>>;

/** Reads npm's lock files: the project's, and the one that npm leaves in `node_modules`. */
class Locks {
  readonly #read = new Map<string, Promise<Locked>>();

  async integrityOf(folder: string): Promise<string> {
    for (const root of upwards(dirname(folder))) {
      for (const file of ["package-lock.json", join("node_modules", ".package-lock.json")]) {
        const packages = await this.#packages(join(root, file));
        const { integrity } = packages[relative(root, folder).split(sep).join("/")] ?? {};
        if (integrity !== undefined) return integrity;
      }
    }
    return "";
  }

  #packages(file: string): Promise<Locked> {
    const known = this.#read.get(file);
    if (known !== undefined) return known;
    const read = readFile(file, "utf8").then(
      (text) => (JSON.parse(text) as { packages?: Locked }).packages ?? {},
      () => ({}),
    );
    this.#read.set(file, read);
    return read;
  }
}
