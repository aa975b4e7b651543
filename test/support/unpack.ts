/** Unpacks archives of fixtures. */
import { createReadStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createGunzip } from "node:zlib";
import { readTar } from "#node/formats/tar/read.ts";

/** Extracts the files of a `.tar.gz` to a folder, which is created if necessary. */
export async function unpack(archive: URL, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for await (const { header, body } of readTar(createReadStream(archive).pipe(createGunzip()))) {
    const path = join(folder, header.name);
    if (header.type === "5") await mkdir(path, { recursive: true });
    if (header.type !== "0") continue;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, Buffer.concat(await Array.fromAsync(body)));
  }
}
