/**
 * Which tests a change concerns. A file needs what it names: in an import, as a URL beside itself,
 * as a path from the root of the tree, or as a bundled module by its name. A test is affected by
 * the files that it needs, also through others.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";

/** The folders of the root that hold what tests need. */
export const watched = ["config", "core", "docs", "modules", "test"] as const;

interface Manifest {
  readonly imports: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly source?: string }>>;
}

export class Tree {
  readonly #root: string;
  readonly #manifest: Manifest;
  /** The files that name a file or folder, all by their paths from the root. */
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
   * Test files that a change of these files affects: the fewer steps between them, the earlier, and
   * unit tests first.
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

  /** What names a file, or one of the folders that it is in. */
  *#needing(file: string): Iterable<string> {
    for (let path = file; path !== "."; path = dirname(path)) yield* this.#namedBy.get(path) ?? [];
  }

  /** Pages are found by the tests of the documentation, which name none of them. */
  #pagesTests(file: string): string[] {
    if (!file.endsWith(".md")) return [];
    return [...this.#namedBy.values()]
      .flatMap((names) => [...names])
      .filter((name) => /^test\/contract\/docs\//.test(name));
  }

  #read(file: string): void {
    const source = readFileSync(join(this.#root, file), "utf8").replaceAll(typeImports, "");
    for (const [, text = "", inserts] of source.matchAll(literals)) {
      // Of a text into which something is inserted, the folder is known.
      const known = inserts === undefined ? text : text.slice(0, text.lastIndexOf("/") + 1);
      for (const name of known.split(",")) {
        const target = this.#target(file, name);
        if (target === undefined) continue;
        const namers = this.#namedBy.get(target) ?? new Set();
        this.#namedBy.set(target, namers.add(file));
      }
    }
  }

  /** The path from the root of what a text in a file names; undefined when it names nothing. */
  #target(file: string, text: string): string | undefined {
    const path = this.#path(file, text);
    if (path === undefined) return undefined;
    const target = relative(this.#root, join(this.#root, path));
    const parts = target.split(sep);
    // Nearly everything is below these, so that naming them says nothing.
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
    // Tests have a host load modules by their names.
    if (/^http(_[a-z]+)*$/.test(text) && file.startsWith("test/")) return `modules/mod_${text}/index.ts`;
    return basename(text) === text && /^[\w.]+\.\w+$/.test(text) ? join(dirname(file), text) : undefined;
  }
}

/** Texts without blanks, to the end or to the first value that is inserted. */
const literals = /["'`]([\w#.][^"'`\s${}]*)(?:["'`]|(\$\{))/g;
/** They are gone before a program runs: what changes there is the compiler's affair. */
const typeImports = /^(?:import|export) type [^;]*? from "[^"]*"/gm;
