/**
 * Tar archives for tests: correct ones written by a library, and entries that no correct program
 * writes.
 */
import { type Header, pack } from "tar-stream";
import { plainHeader } from "#node/formats/tar/header.ts";
import { padding, writeHeader } from "#node/formats/tar/write.ts";

export type PackedEntry = Partial<Header> & { readonly name: string; readonly body?: string };

export async function packed(entries: readonly PackedEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { body = "", ...header } of entries) archive.entry(header, body);
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
}

/** Makes a file entry. A special entry in front of another one has type `x`, `g`, `L` or `K`. */
export function entry(type: string, data: string, { name = "special", size = data.length } = {}): Buffer {
  const block = Buffer.from(writeHeader({ ...plainHeader("0", name), size }));
  block.write(type, 156, "latin1");
  block.write(" ".repeat(8), 148, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([block, Buffer.from(data), Buffer.alloc(padding(data.length))]);
}
