/**
 * Finds the tests that a change affects. A file needs the files that it names: in an import, as a
 * URL relative to itself, as a path from the root of the tree, or as a bundled module by its name.
 * A change of a file affects the tests that need it directly or indirectly.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";

/** Folders of the root with files that tests need. */
export const watched = ["config", "core", "docs", "modules", "test"] as const;

interface Manifest {
  readonly imports: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly source?: string }>>;
}

export class Tree {
  readonly #root: string;
  readonly #manifest: Manifest;
  /** For each file or folder, the files that name it. All are paths from the root. */
  readonly #namedBy = new Map<string, Set<string>>();

  /** Reads every source below `root`. */
  constructor(root: string) {
    this.#root = root;
    this.#manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const folder of watched.filter((name) => existsSync(join(root, name)))) {
      for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
        if (/\.[cm]?[jt]s$/.test(name)) this.#read(join(folder, name));
      }
    }
  }

  /**
   * Returns the test files that a change of these files affects. Tests with fewer steps between
   * them come first, then unit tests.
   */
  affected(changed: Iterable<string>): string[] {
    const reached = new Set<string>();
    let next: string[] = [...changed].flatMap((file) => [file, ...this.#pagesTests(file)]);
    while (next.length > 0) {
      const fresh = new Set(next).difference(reached);
      const isUnit = (file: string) => Number(file.startsWith("test/unit/"));
      for (const file of [...fresh].sort((one, other) => isUnit(other) - isUnit(one))) reached.add(file);
      next = [...fresh].flatMap((file) => [...this.#needing(file)]);
    }
    return [...reached].filter((file) => file.endsWith(".test.ts") && existsSync(join(this.#root, file)));
  }

  /** Yields the files that name a file or one of its folders. */
  *#needing(file: string): Iterable<string> {
    for (let path = file; path !== "."; path = dirname(path)) yield* this.#namedBy.get(path) ?? [];
  }

  /** The tests of the documentation need every page, but name none. */
  #pagesTests(file: string): string[] {
    if (!file.endsWith(".md")) return [];
    return [...this.#namedBy.values()]
      .flatMap((names) => [...names])
      .filter((name) => /^test\/contract\/docs\//.test(name));
  }

  #read(file: string): void {
    const source = readFileSync(join(this.#root, file), "utf8").replaceAll(typeImports, "");
    for (const [, text = "", inserts] of source.matchAll(literals)) {
      // If a value is inserted into a text, only its folder is known.
      const known = inserts === undefined ? text : text.slice(0, text.lastIndexOf("/") + 1);
      for (const name of known.split(",")) {
        const target = this.#target(file, name);
        if (target === undefined) continue;
        const namers = this.#namedBy.get(target) ?? new Set();
        this.#namedBy.set(target, namers.add(file));
      }
    }
  }

  /** Returns the path from the root of the file that a text names, or undefined. */
  #target(file: string, text: string): string | undefined {
    const path = this.#path(file, text);
    if (path === undefined) return undefined;
    const target = relative(this.#root, join(this.#root, path));
    const parts = target.split(sep);
    // Nearly all files are below these folders, so naming one of them says nothing.
    if (parts.length < 2 || parts[0] === ".." || !existsSync(join(this.#root, target))) return undefined;
    const isModule = parts.length === 2 && parts[0] === "modules";
    return isModule && statSync(join(this.#root, target)).isDirectory() ? undefined : target;
  }

  #path(file: string, text: string): string | undefined {
    const { imports, exports } = this.#manifest;
    if (/^\.{1,2}\//.test(text)) return join(dirname(file), text);
    if (text.startsWith("#")) {
      const alias = Object.keys(imports).find((key) => text.startsWith(key.slice(0, -1)));
      return alias && join(imports[alias]?.slice(0, -1) ?? "", text.slice(alias.length - 1));
    }
    if (/^modhost(\/|$)/.test(text)) {
      const target = exports[`.${text.slice("modhost".length)}`];
      return typeof target === "object" ? target.source : undefined;
    }
    if (watched.some((folder) => text.startsWith(`${folder}/`))) return text;
    // Tests let a host load modules by their names.
    if (/^http(_[a-z]+)*$/.test(text) && file.startsWith("test/")) return `modules/mod_${text}/index.ts`;
    return basename(text) === text && /^[\w.]+\.\w+$/.test(text) ? join(dirname(file), text) : undefined;
  }
}

/** Texts without blanks, up to their end or to the first inserted value. */
const literals = /["'`]([\w#.][^"'`\s${}]*)(?:["'`]|(\$\{))/g;
/** These imports do not exist at run time. Changes in types are left to the compiler. */
const typeImports = /^(?:import|export) type [^;]*? from "[^"]*"/gm;
