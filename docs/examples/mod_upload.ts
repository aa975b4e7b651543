/**
 * A page to upload and find files: start `modhost run ./mod_upload.ts` and open
 * http://localhost:5280/upload/
 *
 * Files are stored below the server's data folder. A file of any size passes through without being
 * stored in memory.
 */
import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Module, type MultipartPart, redirect } from "modhost";
import type { HttpFiles } from "modhost/http_files";
import { escape_html, size_text, urlencode } from "modhost/net/http";

export const depends = ["http", "http_files"];

export const options = {
  upload_max_size: {
    type: "integer",
    default: 100_000_000,
    min: 1,
    unit: "bytes",
    describe: "Largest file that may be uploaded; a larger one gets 413.",
  },
} as const;

export default async function upload(module: Module<typeof options>) {
  const { serve } = module.depends<HttpFiles>("http_files");
  const folder = join(module.data_path(), "upload");
  const limit = module.get_option_integer("upload_max_size");
  await mkdir(folder, { recursive: true });
  const file = serve(folder);

  module.provides("http", {
    // Without this, a body is read into memory before the handler is called, and is rejected above
    // http_max_content_size.
    streaming_uploads: true,
    route: {
      "GET /": async (event) => {
        event.response.headers.content_type = "text/html; charset=utf-8";
        return page(await stored(folder), limit);
      },

      "POST /": async (event) => {
        let saved = 0;
        for await (const part of event.request.parts({ part_bytes: limit, parts: 20 })) {
          // A form sends an empty part for an empty file field.
          if (part.name !== "file" || !part.filename) continue;
          const name = await save(part, folder);
          module.log.info("Stored %s for %s", name, event.request.ip);
          saved += 1;
        }
        if (saved === 0) return 400;
        // The browser requests the page again, with GET: reloading it sends nothing twice.
        return redirect(event.request.path);
      },

      "GET /file/*": (event, path) => {
        // Uploaded files must not run as pages of this site.
        event.response.headers.content_disposition = "attachment";
        event.response.headers.x_content_type_options = "nosniff";
        return file(event, path);
      },
    },
  });
}

/**
 * Writes one part under a name that begins with a dot, which `serve` does not show, and renames it
 * when it is complete. Returns the new name. A part that is cut off or too large leaves nothing
 * behind.
 */
async function save(part: MultipartPart, folder: string): Promise<string> {
  const unfinished = join(folder, `.${randomUUID()}`);
  // Opened first: a stream that opens the file itself could create it after it was removed.
  const file = await open(unfinished, "wx");
  try {
    await pipeline(part.body, file.createWriteStream());
    return await publish(unfinished, folder, plainName(part.filename ?? ""));
  } finally {
    await rm(unfinished, { force: true });
  }
}

/**
 * A link fails where a rename would replace: a second `notes.txt` becomes something like
 * `notes-5f3a90c1.txt`.
 */
async function publish(unfinished: string, folder: string, wanted: string): Promise<string> {
  const extension = extname(wanted);
  const stem = wanted.slice(0, wanted.length - extension.length);
  for (let name = wanted; ; name = `${stem}-${randomUUID().slice(0, 8)}${extension}`) {
    try {
      await link(unfinished, join(folder, name));
      return name;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** The client chooses `filename`: folders, leading dots and odd characters are removed. */
function plainName(filename: string): string {
  const last = filename.split(/[\\/]/).at(-1) ?? "";
  const plain = last.replace(/[^\p{L}\p{N}._ -]/gu, "_").replace(/^[. ]+/, "");
  const extension = extname(plain).slice(0, 20);
  return `${plain.slice(0, plain.length - extension.length).slice(0, 60) || "unnamed"}${extension}`;
}

interface Stored {
  readonly name: string;
  readonly size: number;
}

async function stored(folder: string): Promise<Stored[]> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith(".")).sort();
  return Promise.all(names.map(async (name) => ({ name, size: (await stat(join(folder, name))).size })));
}

function page(files: readonly Stored[], limit: number): string {
  const items = files.map(
    // Text from outside is escaped: for the address by urlencode, for the page by escape_html.
    ({ name, size }) => `<li><a href="file/${urlencode(name)}">${escape_html(name)}</a> ${size_text(size)}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<title>Uploads</title>
<h1>Uploads</h1>
<form method="post" enctype="multipart/form-data">
  <label>Files, up to ${size_text(limit)} each: <input type="file" name="file" multiple required></label>
  <button>Upload</button>
</form>
<ul>
${items.join("\n")}
</ul>
</html>
`;
}
