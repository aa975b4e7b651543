/**
 * Members with a leading `_` are insides of Node.js or of a library. Who uses them does so in a
 * folder `patches`.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * What Node documents for those who implement a stream. On a stream of one's own it is no inside.
 */
const implemented = /\boverride _(?:read|write|writev|transform|flush|final|construct|destroy)\(|\bsuper\._destroy\(/g;

/** Files that may use such members, each with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  "core/http/message/body.ts": "counts a body where middleware reads it: functions of every stream, called through",
  "core/http/middleware/classic_messages.ts": "a message of the host's own, made as a stream",
  "core/http/middleware/middleware.ts": "a message of the host's own, made as a stream",
  "core/http/message/multipart/parser.ts": "a parser that extends formidable's, which is a stream",
  "core/isolation/output.ts": "streams of a worker, which it writes to in larger pieces",
  "modules/mod_node/api/candidates.ts": "tells streams of other packages by what they have",
  "modules/mod_node/network/kad/record_store.ts": "extends a class of the library, which declares it for that",
};

/**
 * As a key of what is taken apart or assigned: these names, as a parameter may begin with `_` for
 * another reason.
 */
const keys = /[{,]\s*_(?:read|writev?|destroy|transform|handle|parent|paused|header|events|httpMessage)\s*[:(,}]/;

function usesInsides(source: string): boolean {
  const code = source
    .replace(/^\s*(?:\/\/|\/?\*).*$/gm, "")
    .replace(/`[^`]*`|"[^"\n]*"/g, '""')
    .replace(implemented, "");
  return /[.?]_[a-zA-Z]/.test(code) || keys.test(code);
}

test("uses of members with a leading _ are found, and streams of one's own are none", () => {
  for (const source of [
    "socket._handle.fd;",
    "const { _handle: handle } = socket;",
    "x?._parent;",
    "Object.assign(a, { _read: b });",
  ])
    assert.ok(usesInsides(source), source);
  for (const source of ["override _read(): void {}", "// of _handle", 'const text = "._handle";', "const _unused = 1;"])
    assert.ok(!usesInsides(source), source);
});

test("only folders named patches use insides of Node.js and of libraries", () => {
  const files = globSync("{core,modules}/**/*.ts", { cwd: root }).filter((file) => !file.includes("/patches/"));
  const found = files.filter((file) => usesInsides(readFileSync(join(root, file), "utf8")));
  assert.deepEqual(found.sort(), Object.keys(exceptions).sort());
});
