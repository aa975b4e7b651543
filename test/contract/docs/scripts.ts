/** Classifies TypeScript and JavaScript blocks, and chooses the file for each example. */
import { basename } from "node:path";
import type { Block } from "./blocks.ts";

export interface Script {
  readonly block: Block;
  /**
   * `module`: a whole module. `test`: a program of tests. `file`: a file that the page names, for
   * use by others. `part`: a part of a module.
   */
  readonly kind: "module" | "test" | "file" | "part";
  /** Path of its file in the folder of the page. */
  readonly file: string;
  readonly code: string;
}

const fileName = /^(?:\w+\/)*\w+(?:\.\w+)*\.(?:ts|js|mjs|cjs)$/;

export function scriptOf(block: Block): Script {
  const { code, line, language } = block;
  const named = /^\/\/ (\S+)\n/.exec(code)?.[1];
  const name = named !== undefined && fileName.test(named) ? named : undefined;
  const isNamedOtherwise = name !== undefined && !isModuleFile(name);
  const isModule = /^export default (?!defineConfig)|^module\.exports\b/m.test(code) && !isNamedOtherwise;
  if (isModule) return { block, kind: "module", file: name ?? moduleFile(block), code };
  if (/from "node:test"/.test(code)) return { block, kind: "test", file: name ?? `line${line}.test.${language}`, code };
  if (name !== undefined) return { block, kind: "file", file: name, code };
  return { block, kind: "part", file: `line${line}.ts`, code: completed(block) };
}

const isModuleFile = (name: string): boolean => /(?:^|\/)mod_\w+(?:\/index)?\.\w+$/.test(name);

/** Returns the name from the text, or else the name of the function. */
function moduleFile({ before, after, code, language }: Block): string {
  const said = /`(mod_\w+\.\w+)`/g;
  const [, near] = [...before.matchAll(said)].at(-1) ?? said.exec(after) ?? [];
  const [, called = "example"] = /^export default (?:async )?function (\w+)/m.exec(code) ?? [];
  return near ?? `mod_${called}.${language}`;
}

/** Returns the name under which the host loads a module, from its file. */
export function moduleNameOf(file: string): string {
  const own = basename(file).startsWith("index.") ? (file.split("/").at(-2) ?? "") : basename(file);
  return own.replace(/\.\w+$/, "").replace(/^mod_/, "");
}

/**
 * Turns a part of a module into a file with the same number of lines: `module` and `event` are
 * declared, and lines of a route table are put into one.
 */
function completed({ code, given }: Block): string {
  const head = `declare const module: import("modhost").Module; declare const event: import("modhost").HttpEvent; ${given} `;
  const [, imports = "", rest = ""] = /^((?:import [^;]*;\s*|\/\/[^\n]*\n|\s*\n)*)(.*)$/s.exec(code) ?? [];
  const isRoutes = /^(?:async )?"?[A-Z-]+(?: \/[^"]*)?"?\s*[:(]/.test(rest);
  const body = isRoutes ? `module.provides("http", { route: {${rest}} });` : rest;
  return `${head}${imports}${body}\nexport {};\n`;
}
