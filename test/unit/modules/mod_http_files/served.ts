import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import files from "#modules/mod_http_files/index.ts";
import type { HttpFiles } from "#modules/mod_http_files/types.ts";
import { Harness } from "#test/unit/modules/harness.ts";

export const page = "<!DOCTYPE html><title>hi</title>";
export const digits = "0123456789";
export const modified = new Date("2024-05-06T07:08:09.123Z");
export const modifiedText = "Mon, 06 May 2024 07:08:09 GMT";

export const folder = await mkdtemp(join(tmpdir(), "modhost-files-"));
export const www = join(folder, "www");
const content: Record<string, string> = {
  "index.html": page,
  "digits.txt": digits,
  "empty.txt": "",
  "UPPER.HTML": page,
  "a b & ü?#%.txt": "odd",
  "%2e%2e": "a name of dots",
  "back\\slash.txt": "backslash",
  noextension: "x",
  "data.unknownext": "x",
  ".hidden/secret.txt": "hidden",
  ".secret": "hidden",
  "sub/index.htm": "sub index",
  "sub/deep/file.txt": "deep",
  "bare/file.txt": "bare",
  "packed.js": "plain",
  "packed.js.br": "brotli!",
  "packed.js.gz": "gzipped",
  "only.css": "plain",
  "only.css.gz": "gzipped",
  "../outside.txt": "outside",
  "../wwwother/file.txt": "outside",
};
for (const [name, text] of Object.entries(content)) {
  const path = join(www, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
  await utimes(path, modified, modified);
}
await symlink("../outside.txt", join(www, "leak.txt"));
await symlink("..", join(www, "up"));
await symlink("digits.txt", join(www, "inner.txt"));
await symlink("loop", join(www, "loop"));
await writeFile(join(www, "trap.js"), "plain");
await symlink("../outside.txt", join(www, "trap.js.br"));
execFileSync("mkfifo", [join(www, "pipe")]);

export const server = await new Harness().start();
export const library: HttpFiles = files(server.module("http_files", { http_files_dir: www }));
export const { serve } = library;
server.module("http_app").provides("http", {
  route: {
    "GET /one": serve(join(www, "digits.txt")),
    "POST /one": serve(join(www, "digits.txt")),
    "GET /one/*": serve(join(www, "digits.txt")),
    "GET /folder": serve(join(www, "sub")),
    "GET /aged/*": serve({ path: www, max_age: 60, mime_map: { unknownext: "text/x-own", ".TXT": "text/x-txt" } }),
    "GET /open/*": serve({ path: www, hidden: true, index_files: ["none", "digits.txt"] }),
    "GET /listed/*": serve({ path: www, directory_index: true, index_files: [] }),
    "GET /astray": serve({
      path: join(www, "bare"),
      index_files: ["../digits.txt", "out/digits.txt", "../../outside.txt"],
    }),
    "GET /later/*": serve(join(folder, "later")),
    "GET /typed/*": (event, path) => {
      Object.assign(event.response.headers, { content_type: "text/x-mine", vary: "Origin" });
      return serve(www)(event, path);
    },
  },
});

after(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

export const get = (path: string, headers: Record<string, string> = {}) => server.fetch(`/files${path}`, headers);
