/**
 * Reads the exported declarations of the host and of the node from the sources: the reference of
 * types is made from them.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import ts from "typescript";

/** A declaration that an author may import. */
export interface Exported {
  readonly name: string;
  /** Path of its file from the root of the package. */
  readonly file: string;
  readonly node: ts.Declaration;
}

export interface Sources {
  /** Files of types that bundled modules export, such as that of `modhost/http_files`. */
  readonly ofModules: readonly string[];
  /**
   * Returns the exports of a file: its own, then those that it re-exports, in the order of the
   * sources.
   */
  exportsOf(file: string): Exported[];
  /** Returns the text of the comment at the beginning of a file. */
  introductionOf(file: string): string;
}

/** Returns the files of types that bundled modules export, such as that of `modhost/http_files`. */
export function exportedTypes(root: string): string[] {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
    exports: Record<string, string | { source?: string }>;
  };
  const sources = Object.values(exports).map((entry) => (typeof entry === "string" ? "" : (entry.source ?? "")));
  return sources
    .map((source) => source.replace(/^\.\//, ""))
    .filter((source) => /^modules\/[^/]+\/types\.ts$/.test(source));
}

/** Reads the sources below `root`, but not the packages that they import. */
export function readSources(root: string): Sources {
  const entries = [
    "core/types.ts",
    "core/index.ts",
    "core/testing/index.ts",
    "core/cli/index.ts",
    "modules/mod_node/api/index.ts",
    "modules/mod_node/library/types.ts",
    "modules/mod_node/node/low_level_node.ts",
    ...exportedTypes(root),
  ].map((file) => root + file);
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    allowImportingTsExtensions: true,
    noLib: true,
    noEmit: true,
    types: [],
  };
  const entry = new Set(entries);
  const own = (path: string) =>
    path.startsWith(`${root}core/`) || path.startsWith(`${root}modules/mod_node/`) || entry.has(path);
  const host = ts.createCompilerHost(options, true);
  const { fileExists, readFile } = host;
  host.fileExists = (path) => own(path) && fileExists(path);
  host.readFile = (path) => (own(path) ? readFile(path) : undefined);
  const program = ts.createProgram(entries, options, host);
  const checker = program.getTypeChecker();

  const sourceOf = (file: string): ts.SourceFile => {
    const source = program.getSourceFile(root + file);
    if (source === undefined) throw new Error(`${file} is not among the sources of the reference`);
    return source;
  };
  const declarationOf = (symbol: ts.Symbol): ts.Declaration => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    const [node] = target.declarations ?? [];
    if (node === undefined) throw new Error(`${symbol.name} is exported, but not declared in the sources`);
    return node;
  };
  const fileOrder = new Map(program.getSourceFiles().map((source, at) => [source, at]));
  return {
    ofModules: exportedTypes(root),
    exportsOf(file) {
      const source = sourceOf(file);
      const symbol = checker.getSymbolAtLocation(source);
      const orderOf = ({ node }: Exported) =>
        node.getSourceFile() === source ? -1 : (fileOrder.get(node.getSourceFile()) ?? 0);
      const found = (symbol === undefined ? [] : checker.getExportsOfModule(symbol)).map((exported) => {
        const node = declarationOf(exported);
        return { name: exported.name, node, file: relative(root, node.getSourceFile().fileName) };
      });
      return found.sort((a, b) => orderOf(a) - orderOf(b) || a.node.pos - b.node.pos);
    },
    introductionOf(file) {
      const [, comment = ""] = /^\/\*\*(.*?)\*\//s.exec(sourceOf(file).text) ?? [];
      return comment.replaceAll(/^ *\* ?/gm, "").trim();
    },
  };
}
