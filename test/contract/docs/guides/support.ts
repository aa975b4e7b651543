/** Reads the modules that a guide shows: code blocks whose first line names their file. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const project = fileURLToPath(new URL("../../../..", import.meta.url));

export interface ShownFile {
  /** A name or path, such as "mod_notes.ts" or "mod_shop/index.ts". */
  readonly name: string;
  readonly code: string;
}

export function readGuide(name: string): string {
  return readFileSync(join(project, "docs/guides", `${name}.md`), "utf8");
}

/** Returns the TypeScript blocks that begin with a comment that names a file. */
export function shownFiles(guide: string): ShownFile[] {
  const blocks = guide.matchAll(/^```ts\n\/\/ ([\w./-]+\.ts)\n(.*?)^```$/gms);
  return Array.from(blocks, ([, name = "", code = ""]) => ({ name, code }));
}

/**
 * Writes files into a folder of ES modules. Without its package.json, the compiler would treat them
 * as CommonJS.
 */
export async function writeFiles(folder: string, files: readonly ShownFile[]): Promise<void> {
  await writeFile(join(folder, "package.json"), '{ "type": "module" }\n');
  for (const { name, code } of files) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), code);
  }
}

/** Returns the compiler's messages about files outside of the project, one line each. */
export function typeErrors(files: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "modhost-types-"));
  try {
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ ...settings, files }));
    const compiler = join(project, "node_modules/typescript-native/bin/tsc");
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [compiler, "-p", folder, "--pretty", "false", "--singleThreaded"],
      {
        cwd: folder,
        encoding: "utf8",
      },
    );
    // A message may continue in indented lines.
    const messages = Array.from(
      stdout.matchAll(/^(\S.*?)\((\d+),\d+\): error \w+: (.*(?:\n\s.*)*)/gm),
      ([, ...parts]) => parts,
    );
    // A message without a file is about the settings of the compiler.
    if ((status !== 0 && messages.length === 0) || /^error /m.test(stdout))
      throw new Error(`the compiler ended with ${status}: ${stdout}${stderr}`);
    const wanted = new Set(files.map((file) => realpathSync(file)));
    return messages
      .map(([path = "", ...rest]) => [realpathSync(resolve(folder, path)), ...rest] as const)
      .filter(([path]) => wanted.has(path))
      .map(([path, line, message]) => `${path}:${line}: ${message}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the exports of the package: the name to import, and the source. */
function exported(): [string, string[]][] {
  const { exports } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as {
    exports: Record<string, string | { source: string }>;
  };
  return Object.entries(exports).flatMap(([name, target]) =>
    typeof target === "string" ? [] : [[posix.join("modhost", name), [join(project, target.source)]]],
  );
}

const settings = {
  extends: join(project, "tsconfig.json"),
  compilerOptions: {
    // A guide may declare variables that only its reader uses.
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowJs: true,
    checkJs: true,
    typeRoots: [join(project, "node_modules/@types")],
    paths: {
      ...Object.fromEntries(exported()),
      "kubo-rpc-client": [join(project, "node_modules/kubo-rpc-client/dist/src/index.d.ts")],
      koa: [join(project, "node_modules/@types/koa")],
      "@koa/router": [join(project, "node_modules/@koa/router")],
    },
  },
  include: [],
};
