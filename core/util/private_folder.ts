import { mkdirSync } from "node:fs";

/** Makes a folder that only its owner can read, with those above it that are missing; one that is there stays as it is. */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}
