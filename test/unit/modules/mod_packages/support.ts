/** Settings, modules and checks for tests of packages. */
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FetchedModule, fetchModule, PackageError, type PackageErrorCode } from "#modules/mod_packages/engine.ts";
import { defaultLimits, type PackageSettings } from "#modules/mod_packages/settings.ts";
import { NpmRegistry, type Publication } from "#test/support/npm_registry.ts";

/** A folder with a config file, a registry, and settings that use both. */
export class PackageSite {
  readonly registry: NpmRegistry;
  readonly folder: string;
  settings: PackageSettings;

  private constructor(registry: NpmRegistry, folder: string) {
    this.registry = registry;
    this.folder = folder;
    this.settings = {
      lockFile: join(folder, "modules.lock"),
      store: join(folder, "packages"),
      folder,
      env: { HOME: folder },
      minimumReleaseAge: 48 * 3600,
      verifyProvenance: true,
      exceptions: { releaseAge: [], scripts: [], deprecated: [] },
      limits: defaultLimits,
      reserved: [],
      host: "1.2.3",
      node: "26.1.0",
      now: Date.now,
    };
  }

  static async open(): Promise<PackageSite> {
    const folder = await mkdtemp(join(tmpdir(), "modhost-packages-"));
    const site = new PackageSite(await NpmRegistry.start(), folder);
    await site.npmrc();
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.registry[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Writes `.npmrc`, with these lines added. Failed requests are not repeated. */
  async npmrc(...lines: string[]): Promise<void> {
    const all = [`registry=${this.registry.url}`, "fetch-retries=0", ...lines];
    await writeFile(join(this.folder, ".npmrc"), all.join("\n"));
  }

  set(change: Partial<PackageSettings>): void {
    this.settings = { ...this.settings, ...change };
  }

  except(exceptions: Partial<PackageSettings["exceptions"]>): void {
    this.set({ exceptions: { ...this.settings.exceptions, ...exceptions } });
  }

  /** Publishes a module that the host can load. */
  publish(publication: Partial<Publication> = {}) {
    return this.registry.publish({ name: "modhost-mod-shop", ...modulePackage(publication) });
  }

  fetch(source = "shop", options = {}): Promise<FetchedModule> {
    return fetchModule(source, this.settings, options);
  }

  /** Asserts that a source is refused with a message, and that nothing of it is left. */
  async refuses(source: string, code: PackageErrorCode, message: RegExp | string): Promise<PackageError> {
    const before = await this.left();
    const error = await this.fetch(source).then(
      () => assert.fail(`${source} was not refused`),
      (reason: unknown) => reason,
    );
    if (!(error instanceof PackageError)) throw error;
    assert.equal(error.code, code, error.message);
    if (typeof message === "string") assert.equal(error.message, message);
    else assert.match(error.message, message);
    assert.deepEqual(await this.left(), before);
    return error;
  }

  /** Returns all paths in the store, except those that are no packages. */
  async left(): Promise<string[]> {
    const all = await readdir(this.settings.store, { recursive: true }).catch(() => []);
    return all.filter((path) => !path.startsWith(".trust")).sort();
  }
}

/** Completes a publication with what makes a package a module. */
export function modulePackage({ manifest, files, ...others }: Partial<Publication> = {}): Partial<Publication> {
  return {
    ...others,
    manifest: { modhost: { kind: "module", entry: "./index.js", host: "^1.0.0" }, ...manifest },
    files: { "index.js": "export default function load() {}\n", ...files },
  };
}
