import { mkdirSync } from "node:fs";

/**
 * Creates a folder that only its owner can read, with missing parent folders. An existing folder is
 * not changed.
 */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}
